/**
 * Why Jupyter does not show a file, and what to do about it.  Pure.
 */
import { TranslationBundle } from '@jupyterlab/translation';
import { LOCAL } from './records';
import { baseName, isWithin } from './state';
import { fitted } from './toasts';

/** `root` is Jupyter's root directory; `null` when the page does not know it. */
export function unshownText(
  file: { path: string; host: string },
  root: string | null,
  trans: TranslationBundle
): string {
  const { path, host } = file;
  const isOutside = root === null || !isWithin(path, root);
  // A part that is hidden but above both hides nothing.
  const isHidden = path.slice(sharedFolder(path, root ?? '').length).includes('/.');
  const text = (name: string) => {
    if (host !== LOCAL) {
      return trans.__('Jupyter cannot open %1: it is on the host %2.', name, host);
    }
    if (isOutside && isHidden) {
      return trans.__(
        'Jupyter cannot open %1. Start it in a folder above this file, with ContentsManager.allow_hidden = True.',
        name
      );
    }
    if (isOutside) {
      return trans.__(
        'Jupyter cannot open %1: it is outside of its root directory. Start Jupyter in a folder above both.',
        name
      );
    }
    return isHidden
      ? trans.__(
          'Jupyter cannot open %1: it is hidden, or gone. Start Jupyter with ContentsManager.allow_hidden = True.',
          name
        )
      : trans.__('Jupyter cannot open %1: it is gone, or cannot be read.', name);
  };
  return fitted(text, baseName(path));
}

function sharedFolder(a: string, b: string): string {
  const [parts, others] = [a.split('/'), b.split('/')];
  return parts.slice(0, parts.findIndex((part, i) => part !== others[i])).join('/');
}
