/**
 * The selected cell of a notebook, as it stands in a message.
 */
import { INotebookTracker } from '@jupyterlab/notebook';
import { fenced } from '../fence';

/** The cell's source in a fence, or as it is when it is prose; `null` when there is none. */
export function selectedCell(notebooks: INotebookTracker): string | null {
  const model = notebooks.activeCell?.model;
  const source = model?.sharedModel.getSource();
  if (!model || !source?.trim()) {
    return null;
  }
  if (model.type !== 'code') {
    return source;
  }
  const language = notebooks.currentWidget?.model?.defaultKernelLanguage ?? '';
  return fenced(source, language);
}
