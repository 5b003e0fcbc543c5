/**
 * A changed notebook, cell by cell.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { InlinePatch } from './inline';
import { CellChange, cellRows } from './notebook_diff';

/** Lines of one cell that are drawn. */
const LINES = 400;

/** Cells that are drawn at first, and how many more each time that they are asked for. */
const CELLS = 100;

interface Props {
  cells: readonly CellChange[];
  trans: TranslationBundle;
}

export const NotebookChanges = React.memo(function NotebookChanges({ cells, trans }: Props): JSX.Element {
  const [limit, setLimit] = React.useState(CELLS);
  const left = cells.length - limit;
  if (cells.length === 0) {
    return <p className="ocman-File-note">{trans.__('No cell differs.')}</p>;
  }
  return (
    <>
      <ol className="ocman-Cells">
        {cellRows(cells.slice(0, limit)).map(({ same, cell }, i) => (
          <React.Fragment key={i}>
            {same > 0 && (
              <li className="ocman-Cell ocman-mod-same">
                {trans._n('%1 unchanged cell', '%1 unchanged cells', same)}
              </li>
            )}
            <li className={`ocman-Cell ocman-mod-${cell.kind}`}>
              <div className="ocman-Cell-head">
                <span>{cellTitle(cell, trans)}</span>
                {cell.kind === 'modified' && cell.outputs_changed && <span className="ocman-Pill">{trans.__('outputs changed')}</span>}
                {cell.kind === 'modified' && cell.metadata_changed && <span className="ocman-Pill">{trans.__('metadata changed')}</span>}
              </div>
              {cell.source_patch !== null && (
                <InlinePatch patch={cell.source_patch} maxLines={LINES} trans={trans} />
              )}
              {isUntold(cell) && <p className="ocman-File-note">{trans.__('Too large to be shown here.')}</p>}
            </li>
          </React.Fragment>
        ))}
      </ol>
      {left > 0 && (
        <div className="ocman-File-more">
          <button type="button" className="ocman-Button" onClick={() => setLimit(limit + CELLS)}>
            {trans._n('Show more (%1 cell left)', 'Show more (%1 cells left)', left)}
          </button>
        </div>
      )}
    </>
  );
});

/** It differs in its source, and the server does not say how. */
function isUntold(cell: CellChange): boolean {
  return (
    cell.kind === 'modified' && cell.source_patch === null && !cell.outputs_changed && !cell.metadata_changed
  );
}

function cellTitle({ kind, cell_type, index }: CellChange, trans: TranslationBundle): string {
  const type = {
    code: trans.__('Code cell'),
    markdown: trans.__('Markdown cell'),
    raw: trans.__('Raw cell')
  }[cell_type];
  const what = type ?? trans.__('Cell');
  switch (kind) {
    case 'added':
      return trans.__('%1 %2, added', what, index + 1);
    case 'deleted':
      return trans.__('%1, deleted (was number %2)', what, index + 1);
    default:
      return trans.__('%1 %2, modified', what, index + 1);
  }
}
