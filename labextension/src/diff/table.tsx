/**
 * Hunks as a table of numbered lines: in one column, or old beside new.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { visible } from '../asks';
import { Group, Piece } from './groups';
import { Pair, wordMarks } from './pairs';
import { Line, LineKind, Span } from './patch';

/** Characters of one line that are drawn. */
const WIDEST = 2_000;

interface Props {
  groups: readonly Group[];
  /** Name of the table. */
  label: string;
  trans: TranslationBundle;
  /** Old beside new. */
  isSplit?: boolean;
}

/** Rows of hunks, each group a table of its own: what is not in sight costs no layout. */
export const HunkTable = React.memo(function HunkTable(props: Props): JSX.Element {
  const { groups, label, trans, isSplit = false } = props;
  const digits = groups.length > 0 ? digitsOf(groups) : 1;
  // One short hunk from the first line on needs no head.
  const first = groups[0]?.pieces[0]?.hunk;
  const hasHeads =
    first !== undefined &&
    ((first.newStart ?? first.oldStart ?? 0) > 1 ||
      first.section !== '' ||
      groups.some(({ pieces }) => pieces.some(({ hunk }) => hunk !== first)));
  return (
    <div className="ocman-Hunks" style={{ '--ocman-digits': digits } as React.CSSProperties}>
      {groups.map((group, i) => (
        <GroupTable
          key={i}
          label={i === 0 ? label : trans.__('%1, part %2', label, i + 1)}
          {...{ group, trans, isSplit, hasHeads }}
        />
      ))}
    </div>
  );
});

function digitsOf(groups: readonly Group[]): number {
  const { lines, pairs } = groups[groups.length - 1].pieces.slice(-1)[0];
  const last = lines.length > 0 ? lines.slice(-2) : pairs.slice(-1).flatMap(({ left, right }) => [left, right]);
  const highest = Math.max(1, ...last.map(line => Math.max(line?.old ?? 0, line?.new ?? 0)));
  return String(highest).length;
}

interface GroupProps {
  group: Group;
  label: string;
  trans: TranslationBundle;
  isSplit: boolean;
  hasHeads: boolean;
}

const GroupTable = React.memo(function GroupTable(props: GroupProps): JSX.Element {
  const { group, label, trans, isSplit, hasHeads } = props;
  return (
    <div className="ocman-Hunks-group" style={{ '--ocman-rows': group.rows } as React.CSSProperties}>
      <table className={isSplit ? 'ocman-mod-split' : undefined} aria-label={label}>
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
        {group.pieces.map((piece, i) => (
          <PieceBody key={i} {...{ piece, trans, isSplit, hasHeads }} />
        ))}
      </table>
    </div>
  );
});

/** The head of a column; what it holds is seen anyway. */
function Column({ name }: { name: string }): JSX.Element {
  return (
    <th scope="col">
      <span className="ocman-Hidden">{name}</span>
    </th>
  );
}

interface PieceProps {
  piece: Piece;
  trans: TranslationBundle;
  isSplit: boolean;
  hasHeads: boolean;
}

function PieceBody({ piece, trans, isSplit, hasHeads }: PieceProps): JSX.Element {
  const { hunk, isFirst, lines, pairs } = piece;
  const { oldStart, newStart, section } = hunk;
  const marks = wordMarks(hunk);
  const start = newStart || oldStart;
  return (
    <tbody {...(isFirst ? { 'data-ocman-hunk': '', tabIndex: -1 } : {})}>
      {isFirst && hasHeads && (
        <tr className="ocman-Hunk-head">
          <th scope="rowgroup" colSpan={isSplit ? 6 : 4}>
            {start !== null && trans.__('Line %1', start)} <bdi>{section}</bdi>
          </th>
        </tr>
      )}
      {isSplit
        ? pairs.map((pair, i) => <SplitRow key={i} {...{ pair, marks, trans }} />)
        : lines.map((line, i) => <LineRow key={i} {...{ line, marks, trans }} />)}
    </tbody>
  );
}

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
      <span className="ocman-Hidden">{isAdded ? trans.__('added') : trans.__('removed')}</span>
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
