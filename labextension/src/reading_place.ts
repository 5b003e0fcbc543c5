/**
 * Where someone reads in a document, to be put back after its content was replaced.
 */
import { DocumentWidget } from '@jupyterlab/docregistry';

interface Position {
  readonly line: number;
  readonly column: number;
}

/** What file editors and notebooks have, as far as it is used here. */
interface Content {
  editor?: {
    readonly lineCount: number;
    getLine(line: number): string | undefined;
    getCursorPosition(): Position;
    setCursorPosition(position: Position, options?: { scroll?: boolean }): void;
  };
  activeCellIndex?: number;
}

/** What scrolls in a file editor, in a notebook, and elsewhere. */
const SCROLLERS = '.cm-scroller, .jp-WindowedPanel-outer, .jp-Notebook';

/** Remember the place in a view; the answer puts it back. */
export function readingPlace(widget: DocumentWidget): () => void {
  const content = widget.content as unknown as Content;
  const cursor = content.editor?.getCursorPosition();
  const cell = content.activeCellIndex;
  const scroller = widget.node.querySelector<HTMLElement>(SCROLLERS);
  const top = scroller?.scrollTop ?? 0;
  return () => {
    if (widget.isDisposed) {
      return;
    }
    if (cursor && content.editor) {
      // The document may be shorter now.
      const line = Math.max(0, Math.min(cursor.line, content.editor.lineCount - 1));
      const column = Math.min(cursor.column, content.editor.getLine(line)?.length ?? 0);
      content.editor.setCursorPosition({ line, column }, { scroll: false });
    }
    if (cell !== undefined) {
      content.activeCellIndex = cell; // a notebook keeps it within its cells
    }
    // Lines and cells have their heights once they were drawn.
    requestAnimationFrame(() => {
      if (scroller?.isConnected) {
        scroller.scrollTop = top;
      }
    });
  };
}
