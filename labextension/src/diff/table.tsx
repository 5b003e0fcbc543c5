/**
 * Hunks as a table of numbered lines: in one column, or old beside new.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { visible } from '../asks';
import { Pair, sideBySide, wordMarks } from './pairs';
import { Hunk, Line, LineKind, Span } from './patch';

/** Characters of one line that are drawn. */
const WIDEST = 2_000;

interface Props {
  hunks: readonly Hunk[];
  /** Lines that are drawn at most. */
  limit: number;
  /** Name of the table. */
  label: string;
  trans: TranslationBundle;
  /** Old beside new. */
  isSplit?: boolean;
}

/** The first `limit` lines of some hunks. */
export const HunkTable = React.memo(function HunkTable(props: Props): JSX.Element {
  const { hunks, limit, label, trans, isSplit = false } = props;
  let left = limit;
  return (
    <div className="ocman-Hunks-scroll">
      <table className={`ocman-Hunks${isSplit ? ' ocman-mod-split' : ''}`} aria-label={label}>
        <thead>
          {isSplit ? (
            <tr>
              <Column name={trans.__('Old line')} />
              <Column name={trans.__('Old change')} />
              <Column name={trans.__('Old text')} />
              <Column name={trans.__('New line')} />
              <Column name={trans.__('New change')} />
              <Column name={trans.__('New text')} />
            </tr>
          ) : (
            <tr>
              <Column name={trans.__('Old line')} />
              <Column name={trans.__('New line')} />
              <Column name={trans.__('Change')} />
              <Column name={trans.__('Text')} />
            </tr>
          )}
        </thead>
        {hunks.map((hunk, i) => {
          const take = Math.min(left, hunk.lines.length);
          left -= take;
          return take > 0 ? <HunkBody key={i} {...{ hunk, take, trans, isSplit }} /> : null;
        })}
      </table>
    </div>
  );
});

/** The head of a column; what it holds is seen anyway. */
function Column({ name }: { name: string }): JSX.Element {
  return (
    <th scope="col">
      <span className="ocman-ForReaders">{name}</span>
    </th>
  );
}

interface BodyProps {
  hunk: Hunk;
  take: number;
  trans: TranslationBundle;
  isSplit: boolean;
}

const HunkBody = React.memo(function HunkBody({ hunk, take, trans, isSplit }: BodyProps): JSX.Element {
  const { oldStart, newStart, section, lines } = hunk;
  const marks = wordMarks(hunk);
  const shown = take < lines.length ? { ...hunk, lines: lines.slice(0, take) } : hunk;
  const place = (oldStart || newStart) && trans.__('Line %1', newStart || oldStart);
  return (
    <tbody>
      <tr className="ocman-Hunk-head" data-ocman-hunk tabIndex={-1}>
        <th scope="rowgroup" colSpan={isSplit ? 6 : 4}>
          {place} <bdi>{section}</bdi>
        </th>
      </tr>
      {isSplit
        ? sideBySide(shown).map((pair, i) => <SplitRow key={i} {...{ pair, marks, trans }} />)
        : shown.lines.map((line, i) => <LineRow key={i} {...{ line, marks, trans }} />)}
    </tbody>
  );
});

type Marks = ReadonlyMap<Line, readonly Span[]>;

function LineRow({ line, marks, trans }: { line: Line; marks: Marks; trans: TranslationBundle }): JSX.Element {
  return (
    <tr className={`ocman-Line ocman-mod-${line.kind}`}>
      <td className="ocman-Line-number">{line.old}</td>
      <td className="ocman-Line-number">{line.new}</td>
      <SignCell kind={line.kind} trans={trans} />
      <TextCell line={line} marks={marks} trans={trans} />
    </tr>
  );
}

function SplitRow({ pair, marks, trans }: { pair: Pair; marks: Marks; trans: TranslationBundle }): JSX.Element {
  const half = (line: Line | null, number: number | null | undefined) =>
    line ? (
      <>
        <td className={`ocman-Line-number ocman-mod-${line.kind}`}>{number}</td>
        <SignCell kind={line.kind} trans={trans} />
        <TextCell line={line} marks={marks} trans={trans} />
      </>
    ) : (
      <td className="ocman-Line-none" colSpan={3} />
    );
  return (
    <tr className="ocman-Line">
      {half(pair.left, pair.left?.old)}
      {half(pair.right, pair.right?.new)}
    </tr>
  );
}

function SignCell({ kind, trans }: { kind: LineKind; trans: TranslationBundle }): JSX.Element {
  if (kind === 'context') {
    return <td className="ocman-Line-sign" />;
  }
  const isAdded = kind === 'added';
  return (
    <td className={`ocman-Line-sign ocman-mod-${kind}`}>
      <span aria-hidden="true">{isAdded ? '+' : '−'}</span>
      <span className="ocman-ForReaders">{isAdded ? trans.__('added') : trans.__('removed')}</span>
    </td>
  );
}

function TextCell({ line, marks, trans }: { line: Line; marks: Marks; trans: TranslationBundle }): JSX.Element {
  const text = line.text.endsWith('\r') ? line.text.slice(0, -1) : line.text;
  const hidden = text.length - WIDEST;
  return (
    <td className={`ocman-Line-text ocman-mod-${line.kind}`}>
      {marked(hidden > 0 ? text.slice(0, WIDEST) : text, marks.get(line))}
      {line.kind !== 'context' && text !== line.text && (
        <span className="ocman-Line-note" title={trans.__('Ends with a carriage return')}>
          ␍
        </span>
      )}
      {hidden > 0 && (
        <span className="ocman-Line-note">
          {trans._n('… %1 more character', '… %1 more characters', hidden)}
        </span>
      )}
      {line.isUnended && <span className="ocman-Line-note">{trans.__('no line feed at the end')}</span>}
    </td>
  );
}

function marked(text: string, spans: readonly Span[] | undefined): React.ReactNode {
  if (!spans?.length) {
    return visible(text);
  }
  const parts: React.ReactNode[] = [];
  let at = 0;
  for (const [from, to] of spans) {
    parts.push(visible(text.slice(at, from)), <mark key={from}>{visible(text.slice(from, to))}</mark>);
    at = to;
  }
  parts.push(visible(text.slice(at)));
  return parts;
}
