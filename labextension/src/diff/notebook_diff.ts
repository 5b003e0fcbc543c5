/**
 * What the server says about the cells of a changed notebook.
 */
import { FileDiff } from '../records';

/** A cell that came, went, or is not the same any more. */
export interface CellChange {
  readonly kind: 'added' | 'deleted' | 'modified';
  readonly cell_type: string;
  /** From 0: where it is in the new notebook; of a deleted cell where it was in the old one. */
  readonly index: number;
  /** Unified; `null` where its source is the same, or too large to be told. */
  readonly source_patch: string | null;
  readonly outputs_changed: boolean;
  readonly metadata_changed: boolean;
}

/** A changed cell, and how many cells before it, up to the last one, are the same. */
export interface CellRow {
  readonly same: number;
  readonly cell: CellChange;
}

/** The changed cells of a notebook that the server could read; else `null`. */
export function cellChanges(file: FileDiff): readonly CellChange[] | null {
  const cells = (file as { notebook_diff?: unknown }).notebook_diff;
  return file.notebook && Array.isArray(cells) ? (cells as CellChange[]) : null;
}

export function cellRows(cells: readonly CellChange[]): CellRow[] {
  let next = 0;
  return cells.map(cell => {
    if (cell.kind === 'deleted') {
      return { same: 0, cell };
    }
    const same = Math.max(cell.index - next, 0);
    next = cell.index + 1;
    return { same, cell };
  });
}
