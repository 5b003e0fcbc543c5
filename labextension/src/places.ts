/**
 * Where the files of the server's root directory are: as the server's disk names them, and as Jupyter does.
 */
import { PageConfig } from '@jupyterlab/coreutils';

/** The server's root directory, resolved; `null` when the page does not know it. */
export function serverRoot(): string | null {
  // `serverRoot` hides the home directory behind "~", which means nothing to the server.
  const root = PageConfig.getOption('ocmanRoot') || PageConfig.getOption('serverRoot');
  return root.startsWith('/') ? root.replace(/\/+$/, '') || '/' : null;
}

/** The absolute path of a path of Jupyter's default drive. */
export function absolutePath(local: string, root: string): string {
  const inside = local.replace(/^\/+/, '');
  return inside ? `${root === '/' ? '' : root}/${inside}` : root;
}

/** The path of Jupyter's default drive for an absolute path; `null` outside the root directory. */
export function contentsPath(absolute: string, root: string): string | null {
  const start = root === '/' ? '/' : root + '/';
  if (absolute === root) {
    return '';
  }
  return absolute.startsWith(start) ? absolute.slice(start.length) : null;
}
