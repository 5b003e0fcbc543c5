/**
 * What a program printed, or a file holds: never more of it than can be drawn at once.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { excerpt, slices } from './chunks';
import { byteSize, plain } from './words';

/** Shown of a longer text until all of it is asked for. */
const LINES = 40;
const CHARACTERS = 8_000;
/** Longer texts are opened in pieces of so many characters, one each so many milliseconds. */
const SLICE = 20_000;
const SLICE_AFTER = 40;

interface Props {
  text: string;
  /** Which end tells most. */
  side: 'head' | 'tail';
  /** Name of it. */
  label: string;
  trans: TranslationBundle;
}

export const Output = React.memo(function Output({ text, side, label, trans }: Props): JSX.Element | null {
  const [isWhole, setWhole] = React.useState(false);
  const shown = React.useMemo(() => plain(excerpt(text, side, LINES, CHARACTERS)).trimEnd(), [text, side]);
  if (!text.trim()) {
    return null;
  }
  const isCut = shown.length < text.trimEnd().length - LINES;
  const more = isCut && (
    <button
      type="button"
      className="ocman-LinkButton"
      aria-expanded={isWhole}
      onClick={() => setWhole(!isWhole)}
    >
      {isWhole ? trans.__('Show less') : trans.__('Show all (%1)', byteSize(text.length, trans))}
    </button>
  );
  return (
    <div className="ocman-Output">
      {side === 'tail' && more}
      {isCut && isWhole ? (
        <Whole text={text} label={label} />
      ) : (
        <pre tabIndex={0} role="group" aria-label={label} dir="auto">
          {shown}
        </pre>
      )}
      {side === 'head' && more}
    </div>
  );
});

/** All of a long text, drawn little by little. */
function Whole({ text, label }: { text: string; label: string }): JSX.Element {
  const all = React.useMemo(() => slices(plain(text), SLICE), [text]);
  const [count, setCount] = React.useState(1);
  React.useEffect(() => {
    if (count < all.length) {
      const timer = setTimeout(() => setCount(count + 1), SLICE_AFTER);
      return () => clearTimeout(timer);
    }
    return undefined;
  }, [count, all]);
  return (
    <div className="ocman-Output-whole" tabIndex={0} role="group" aria-label={label}>
      {all.slice(0, count).map((slice, i) => (
        <Slice key={i} text={slice} />
      ))}
    </div>
  );
}

const Slice = React.memo(function Slice({ text }: { text: string }): JSX.Element {
  return <pre dir="auto">{text.replace(/\n$/, '')}</pre>;
});
