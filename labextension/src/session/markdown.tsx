/**
 * Text that an agent wrote, as untrusted markdown.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { pieces } from './chunks';
import { Painter } from './painter';
import { byteSize } from './words';

/** As many pieces of a very long text are shown until more are asked for. */
const SHOWN = 24;

interface Props {
  text: string;
  /** It still grows. */
  live: boolean;
  painter: Painter;
  trans: TranslationBundle;
}

export const Markdown = React.memo(function Markdown({ text, live, painter, trans }: Props): JSX.Element {
  const [shown, setShown] = React.useState(SHOWN);
  const all = pieces(text);
  // Of a text that grows the end is read, of one that is there its beginning.
  const from = live ? Math.max(0, all.length - shown) : 0;
  const to = Math.min(all.length, from + shown);
  const left = all.slice(to).reduce((size, piece) => size + piece.length, 0);
  return (
    <div className="ocman-Markdown jp-RenderedHTMLCommon" dir="auto">
      {all.slice(from, to).map((piece, i) => (
        <Piece key={from + i} source={piece} live={live && from + i === all.length - 1} painter={painter} />
      ))}
      {left > 0 && (
        <button type="button" className="ocman-LinkButton" onClick={() => setShown(shown + SHOWN)}>
          {trans.__('Show more (%1 left)', byteSize(left, trans))}
        </button>
      )}
    </div>
  );
});

function Piece({ source, live, painter }: { source: string; live: boolean; painter: Painter }): JSX.Element {
  const host = React.useRef<HTMLDivElement>(null);
  React.useLayoutEffect(() => {
    const node = host.current!;
    if (!node.classList.contains('ocman-mod-drawn')) {
      // The words are there at once; their form follows.
      node.textContent = source;
    }
    painter.paint(node, source, live);
  }, [source, live, painter]);
  React.useEffect(() => {
    const node = host.current!;
    return () => painter.forget(node);
  }, [painter]);
  return <div ref={host} className="ocman-Markdown-piece" />;
}
