/**
 * The changed files as rows: a plain list, or a tree of folders.
 */
import { FileDiff } from '../records';

export interface FileRow {
  readonly kind: 'file';
  readonly key: string;
  readonly depth: number;
  readonly name: string;
  readonly file: FileDiff;
}

/** A folder, or a chain of folders that hold nothing else. */
export interface FolderRow {
  readonly kind: 'folder';
  readonly key: string;
  readonly depth: number;
  readonly name: string;
  readonly files: number;
  readonly isOpen: boolean;
}

export type Row = FileRow | FolderRow;

export interface RowOptions {
  readonly isTree: boolean;
  /** Keys of closed folders. */
  readonly closed: ReadonlySet<string>;
}

/** The files that go with a filter, in the order in which they are shown. */
export function matchingFiles(files: readonly FileDiff[], filter: string): FileDiff[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (file: FileDiff): boolean => {
    const text = `${file.path}\n${file.old_path ?? ''}\n${file.status}`.toLowerCase();
    return words.every(word => text.includes(word));
  };
  // Folders come together, as they do in a tree.
  return files
    .filter(matches)
    .map(file => ({ file, parts: partsOf(file) }))
    .sort((a, b) => compareParts(a.parts, b.parts))
    .map(({ file }) => file);
}

/** `files` are sorted as `matchingFiles` does. */
export function fileRows(files: readonly FileDiff[], { isTree, closed }: RowOptions): Row[] {
  if (!isTree) {
    return files.map(file => ({ kind: 'file', key: file.path, depth: 0, name: file.path, file }));
  }
  const rows: Row[] = [];
  addRows(
    rows,
    files.map(file => ({ file, parts: partsOf(file) })),
    0,
    0,
    closed
  );
  return rows;
}

/** A folder that is told as one (a repository inside this one) ends with a slash. */
function partsOf(file: FileDiff): string[] {
  return file.path.replace(/\/$/, '').split('/');
}

interface Entry {
  readonly file: FileDiff;
  readonly parts: string[];
}

/** Rows of entries that share their first `from` components. */
function addRows(
  rows: Row[],
  entries: readonly Entry[],
  from: number,
  depth: number,
  closed: ReadonlySet<string>
): void {
  for (let at = 0; at < entries.length; ) {
    const { file, parts } = entries[at];
    if (parts.length === from + 1) {
      rows.push({ kind: 'file', key: file.path, depth, name: parts[from], file });
      at += 1;
      continue;
    }
    let end = at + 1;
    while (end < entries.length && isFolder(entries[end], from) && entries[end].parts[from] === parts[from]) {
      end += 1;
    }
    const inside = entries.slice(at, end);
    let to = from + 1;
    while (inside.every(entry => isFolder(entry, to) && entry.parts[to] === parts[to])) {
      to += 1;
    }
    const key = parts.slice(0, to).join('/') + '/';
    const isOpen = !closed.has(key);
    rows.push({
      kind: 'folder',
      key,
      depth,
      name: parts.slice(from, to).join('/'),
      files: inside.length,
      isOpen
    });
    if (isOpen) {
      addRows(rows, inside, to, depth + 1, closed);
    }
    at = end;
  }
}

function isFolder(entry: Entry, at: number): boolean {
  return entry.parts.length > at + 1;
}

/** `a2` before `a10`. */
const names = new Intl.Collator(undefined, { numeric: true });

/** Folders before files, each by name. */
function compareParts(a: string[], b: string[]): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const isLastA = i === a.length - 1;
    const isLastB = i === b.length - 1;
    if (isLastA !== isLastB) {
      return isLastA ? 1 : -1;
    }
    if (a[i] !== b[i]) {
      return names.compare(a[i], b[i]) || (a[i] < b[i] ? -1 : 1);
    }
  }
  return a.length - b.length;
}
