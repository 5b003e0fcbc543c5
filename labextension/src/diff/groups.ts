/**
 * The rows of hunks in groups that are drawn one after the other, so that no step of drawing is long.
 */
import { Pair, sideBySide } from './pairs';
import { Hunk, Line } from './patch';

/** Rows of a group at most. */
export const GROUP = 150;

/** Rows of one hunk that are in one group; in one column `lines`, in two `pairs`. */
export interface Piece {
  readonly hunk: Hunk;
  /** The hunk begins here. */
  readonly isFirst: boolean;
  readonly lines: readonly Line[];
  readonly pairs: readonly Pair[];
}

export interface Group {
  readonly pieces: readonly Piece[];
  readonly rows: number;
}

/** All rows of some hunks; with `isSplit` as old beside new. */
export function groupsOf(hunks: readonly Hunk[], isSplit: boolean): Group[] {
  const groups: Group[] = [];
  let pieces: Piece[] = [];
  let rows = 0;
  const finish = () => {
    if (pieces.length > 0) {
      groups.push({ pieces, rows });
      pieces = [];
      rows = 0;
    }
  };
  for (const hunk of hunks) {
    const pairs = isSplit ? sideBySide(hunk) : [];
    const all = isSplit ? pairs.length : hunk.lines.length;
    for (let from = 0; from < all; ) {
      const to = Math.min(from + GROUP - rows, all);
      pieces.push({
        hunk,
        isFirst: from === 0,
        lines: isSplit ? [] : hunk.lines.slice(from, to),
        pairs: pairs.slice(from, to)
      });
      rows += to - from;
      from = to;
      if (rows >= GROUP) {
        finish();
      }
    }
  }
  finish();
  return groups;
}

/** The first `limit` rows. */
export function firstRows(groups: readonly Group[], limit: number): readonly Group[] {
  const kept: Group[] = [];
  let left = limit;
  for (const group of groups) {
    if (group.rows <= left) {
      kept.push(group);
      left -= group.rows;
      continue;
    }
    const pieces: Piece[] = [];
    for (const piece of group.pieces) {
      const rows = Math.min(left, piece.lines.length + piece.pairs.length);
      if (rows > 0) {
        pieces.push({ ...piece, lines: piece.lines.slice(0, rows), pairs: piece.pairs.slice(0, rows) });
        left -= rows;
      }
    }
    if (pieces.length > 0) {
      kept.push({ pieces, rows: pieces.reduce((sum, { lines, pairs }) => sum + lines.length + pairs.length, 0) });
    }
    break;
  }
  return kept;
}

export function countRows(groups: readonly Group[]): number {
  return groups.reduce((sum, { rows }) => sum + rows, 0);
}
