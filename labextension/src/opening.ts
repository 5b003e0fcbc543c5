/**
 * Opening of files and folders that are named as the server's disk names them.
 */
import { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { DocumentWidget } from '@jupyterlab/docregistry';
import { TranslationBundle } from '@jupyterlab/translation';
import { contentsPath, serverRoot } from './places';
import { LOCAL } from './records';
import { STAYS, copyPath } from './toasts';
import { unshownText } from './unshown';

/** The part of the application's text editor that is used; its lines count from zero. */
interface Editor {
  readonly lineCount: number;
  setCursorPosition(position: { line: number; column: number }): void;
}

/** The path that Jupyter's contents have for an absolute one; `null` when they cannot show it. */
export function shownPath(absolute: string): string | null {
  const root = serverRoot();
  return root === null ? null : contentsPath(absolute, root);
}

/** Open a file in the editor; where Jupyter does not show it, say so. */
export async function openFile(
  app: JupyterFrontEnd,
  file: { path: string; host: string; line?: number },
  trans: TranslationBundle
): Promise<void> {
  const { path: absolute, host, line } = file;
  const path = host === LOCAL ? shownPath(absolute) : null;
  const { contents } = app.serviceManager;
  try {
    if (path === null) {
      throw new Error('outside of the root directory');
    }
    // Hidden folders are asked for, not guessed: a server can be told to show them.
    await contents.get(path, { content: false });
  } catch {
    const text = unshownText({ path: absolute, host }, serverRoot(), trans);
    Notification.info(text, { autoClose: STAYS, actions: copyPath(absolute, trans) });
    return;
  }
  const widget: unknown = await app.commands.execute('docmanager:open', { path });
  if (line !== undefined && widget instanceof DocumentWidget) {
    await widget.context.ready;
    await widget.revealed;
    // Only a text editor has one; it is empty until its document was read.
    const { editor } = widget.content as { editor?: Editor };
    editor?.setCursorPosition({ line: Math.min(Math.max(line, 1), editor.lineCount) - 1, column: 0 });
  }
}

/** What shows a folder in the file browser; `null` for one that it does not show. */
export function folderOpener(app: JupyterFrontEnd, absolute: string): (() => void) | null {
  const path = shownPath(absolute);
  const isHidden = path?.split('/').some(part => part.startsWith('.'));
  const command = 'filebrowser:go-to-path';
  if (path === null || isHidden || !app.commands.hasCommand(command)) {
    return null;
  }
  return () => void app.commands.execute(command, { path: `/${path}` });
}
