/**
 * Open documents follow the disk: what an agent changed is read again, and nothing that was typed is lost.
 */
import { IDisposable } from '@lumino/disposable';
import { HostEvent, LOCAL, Message, Part } from './records';
import { State, isWithin, keyOf } from './state';

/** Which content of a file is meant. */
export interface Version {
  readonly hash?: string | null;
  readonly modified: string;
  readonly size?: number | null;
}

/** A document of the application; the same object for the same document. */
export interface OpenDocument {
  /** Absolute, on the server's disk. */
  readonly path: string;
  /** It has changes that are not saved. */
  readonly isDirty: boolean;
  /** It is being saved: what is on disk may be newer than what is known. */
  readonly isSaving: boolean;
  /** What it was read from or saved as; `null` before that. */
  readonly known: Version | null;
  /** `null`: there is no such file. */
  onDisk(): Promise<Version | null>;
  reload(version: Version): Promise<void>;
}

/** Why a document with changes of its own is not what is on disk. */
export type Conflict = 'changed' | 'deleted';

export interface FollowerOptions<D extends OpenDocument> {
  documents: () => Iterable<D>;
  /** Tell the user about a conflict, or (`null`) that there is none any more. */
  tell: (document: D, conflict: Conflict | null) => void;
  /** A worktree went away under open documents. */
  lost: (worktree: string, documents: D[]) => void;
}

/** Changes of one file that come together are one, in milliseconds. */
export const FILE_SETTLES = 200;

export class Follower<D extends OpenDocument> implements IDisposable {
  constructor(private _options: FollowerOptions<D>) {}

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    this._timers.forEach(timer => clearTimeout(timer));
    this._timers.clear();
  }

  /** Take what an event says about files. */
  handle(event: HostEvent, state: State): void {
    const { files, folders, lost } = touchedBy(event, state, this._seen);
    if (files.length === 0 && folders.length === 0 && lost === null) {
      return;
    }
    const inside: D[] = [];
    for (const document of this._options.documents()) {
      if (files.includes(document.path) || folders.some(folder => isWithin(document.path, folder))) {
        this.checkSoon(document);
      }
      if (lost !== null && isWithin(document.path, lost)) {
        inside.push(document);
      }
    }
    if (lost !== null && inside.length > 0 && !this._lost.has(lost)) {
      this._lost.add(lost);
      this._options.lost(lost, inside);
    }
    folders.forEach(folder => this._lost.delete(folder));
  }

  /** Events may have been missed. */
  checkAll(): void {
    for (const document of this._options.documents()) {
      this.checkSoon(document);
    }
  }

  checkSoon(document: D): void {
    clearTimeout(this._timers.get(document));
    const timer = setTimeout(() => {
      this._timers.delete(document);
      void this.check(document);
    }, FILE_SETTLES);
    this._timers.set(document, timer);
  }

  /** Compare a document with the disk, and read it again or tell of a conflict. */
  async check(document: D): Promise<void> {
    if (this._checking.has(document)) {
      this._again.add(document);
      return;
    }
    this._checking.add(document);
    try {
      await this._check(document);
    } catch (reason) {
      // The next change asks again; saving has Lab's own check.
      console.warn(`ocman: ${document.path} could not be compared with the disk`, reason);
    } finally {
      this._checking.delete(document);
      if (this._again.delete(document) && !this._disposed) {
        this.checkSoon(document);
      }
    }
  }

  /** The user gives up what the document holds for what is on disk. */
  async replace(document: D): Promise<void> {
    const disk = await document.onDisk();
    if (disk) {
      await document.reload(disk);
      this._options.tell(document, null);
    } else {
      this._options.tell(document, 'deleted');
    }
  }

  /** The user keeps what the document holds: be silent until the disk changes again. */
  async keep(document: D): Promise<void> {
    this._options.tell(document, null);
    this._kept.set(document, (await document.onDisk()) ?? 'deleted');
  }

  private async _check(document: D): Promise<void> {
    if (!document.known || document.isSaving) {
      return;
    }
    const disk = await document.onDisk();
    const { known } = document;
    if (this._disposed || !known || document.isSaving) {
      return;
    }
    if (disk && isSame(disk, known)) {
      this._kept.delete(document);
      this._options.tell(document, null);
      return;
    }
    const kept = this._kept.get(document);
    if (kept !== undefined && (kept === 'deleted' ? !disk : disk && isSame(kept, disk))) {
      return;
    }
    this._kept.delete(document);
    if (!disk) {
      this._options.tell(document, 'deleted');
    } else if (document.isDirty) {
      this._options.tell(document, 'changed');
    } else {
      await document.reload(disk);
      this._options.tell(document, null);
    }
  }

  private _disposed = false;
  private readonly _timers = new Map<D, ReturnType<typeof setTimeout>>();
  private readonly _checking = new Set<D>();
  private readonly _again = new Set<D>();
  /** What was on disk when the user chose to keep the document as it is. */
  private readonly _kept = new WeakMap<D, Version | 'deleted'>();
  /** Worktrees whose loss was told. */
  private readonly _lost = new Set<string>();
  private readonly _seen = new SeenParts();
}

/** By hash where both have one: a file that was only touched is the same. */
export function isSame(a: Version, b: Version): boolean {
  return a.hash && b.hash ? a.hash === b.hash : a.modified === b.modified;
}

/** Parts of messages that were looked at: a message comes whole each time that a part of it changes. */
export class SeenParts {
  /** Whether it is new. */
  add(id: string): boolean {
    if (this._ids.has(id)) {
      return false;
    }
    this._ids.add(id);
    if (this._ids.size > MOST_SEEN) {
      // Sets keep their order: the oldest goes.
      this._ids.delete(this._ids.values().next().value!);
    }
    return true;
  }

  private readonly _ids = new Set<string>();
}

const MOST_SEEN = 5_000;

/** Tools that change no file. */
const READERS = new Set([
  'read',
  'grep',
  'glob',
  'list',
  'webfetch',
  'websearch',
  'codesearch',
  'todowrite',
  'todoread',
  'question',
  'skill',
  'lsp'
]);

/** Tools that say which files they change. */
const EDITORS = new Set(['edit', 'multiedit', 'write', 'patch', 'apply_patch']);

export interface Touched {
  /** Absolute paths of files that may be different now. */
  readonly files: readonly string[];
  /** Folders in which any file may be different now. */
  readonly folders: readonly string[];
  /** A worktree that is gone. */
  readonly lost: string | null;
}

/** What an event says about the files of this server's disk. */
export function touchedBy(event: HostEvent, state: State, seen: SeenParts): Touched {
  const { type, host, data } = event;
  const nothing: Touched = { files: [], folders: [], lost: null };
  if (host !== LOCAL) {
    return nothing;
  }
  switch (type) {
    case 'worktree.removed':
      return { ...nothing, lost: data.path };
    case 'worktree.changed':
      return data.state === 'missing'
        ? { ...nothing, lost: data.path }
        : { ...nothing, folders: [data.path] };
    case 'session.status': {
      const folder = folderOf(state, data.id) ?? data.directory;
      return data.status === 'idle' && folder ? { ...nothing, folders: [folder] } : nothing;
    }
    case 'message.updated':
      return touchedByParts(data.message, folderOf(state, data.session_id), seen);
    default:
      return nothing;
  }
}

function folderOf(state: State, session: string): string | null {
  const known = state.sessions.get(keyOf(LOCAL, session));
  return known ? (known.place ?? known.directory) : null;
}

function touchedByParts(message: Message, folder: string | null, seen: SeenParts): Touched {
  const files: string[] = [];
  const folders: string[] = [];
  for (const part of message?.parts ?? []) {
    if (part.type === 'patch' && Array.isArray(part.files) && seen.add(part.id)) {
      // What a whole step changed, whatever tool did it.
      const named = part.files.filter((file): file is string => typeof file === 'string');
      files.push(...named.flatMap(file => absolute(file, folder) ?? []));
    }
    const status = part.state?.status;
    const isOver = part.type === 'tool' && (status === 'completed' || status === 'error');
    if (!isOver || READERS.has(part.tool ?? '') || !seen.add(part.id)) {
      continue;
    }
    const named = EDITORS.has(part.tool ?? '') ? editedFiles(part) : [];
    if (named.length > 0) {
      files.push(...named.flatMap(file => absolute(file, folder) ?? []));
    } else if (folder) {
      // A command may have changed anything.
      folders.push(folder);
    }
  }
  return { files, folders, lost: null };
}

/** The files that an editing tool says it changed. */
function editedFiles(part: Part): string[] {
  const { input, metadata } = part.state ?? {};
  const found: unknown[] = [input?.filePath, (metadata?.filediff as { file?: unknown } | undefined)?.file];
  if (Array.isArray(metadata?.files)) {
    found.push(...metadata.files.flatMap(file => [file?.filePath, file?.movePath]));
  }
  const paths = found.filter((path): path is string => typeof path === 'string' && path !== '');
  return [...new Set(paths)];
}

function absolute(path: string, folder: string | null): string | null {
  if (path.startsWith('/')) {
    return path;
  }
  return folder && `${folder.replace(/\/+$/, '')}/${path.replace(/^\.\//, '')}`;
}
