/**
 * What a worktree has that something else has not: asked for, asked for again, and what was seen of it.
 */
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { ConnectionState } from '../connection';
import { ApiError } from '../errors';
import { OcmanModel } from '../model';
import { Diff, FileDiff, HostEvent, LOCAL, Worktree } from '../records';
import { KnownSession, Repository, isWithin, keyOf, repositoryOf } from '../state';

export interface DiffOptions {
  host: string;
  /** Of the worktree. */
  path: string;
  /** `base`, a git reference, or the path of another worktree. */
  against?: string;
}

/** Changes of a worktree that come together are one question, in milliseconds. */
export const SETTLES = 400;

export class DiffModel implements IDisposable {
  constructor(
    private _model: OcmanModel,
    options: DiffOptions
  ) {
    this.host = options.host || LOCAL;
    this.path = options.path;
    this._against = options.against || 'base';
    this._phase = _model.connection.phase;
    _model.event.connect(this._onEvent, this);
    _model.changed.connect(this._onModel, this);
  }

  readonly host: string;
  readonly path: string;

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The last answer; it stays while the next is waited for. */
  get diff(): Diff | null {
    return this._diff;
  }

  get files(): readonly FileDiff[] {
    return this._diff?.files ?? [];
  }

  get isLoading(): boolean {
    return this._isLoading;
  }

  /** Why the last question was not answered. */
  get error(): ApiError | null {
    return this._error;
  }

  /** There is no such worktree any more. */
  get isGone(): boolean {
    return this._isGone;
  }

  get worktree(): Worktree | undefined {
    return this.repository?.worktrees.get(this.path);
  }

  get repository(): Repository | undefined {
    return repositoryOf(this._model.state, this.host, this.path);
  }

  get against(): string {
    return this._against;
  }

  /** What was answered about something else is no longer shown. */
  set against(against: string) {
    if (against !== this._against) {
      this._against = against;
      this._diff = null;
      this._error = null;
      void this.refresh();
    }
  }

  /** Whether a human can see it: only then is anything asked for. */
  get isVisible(): boolean {
    return this._isVisible;
  }

  set isVisible(isVisible: boolean) {
    this._isVisible = isVisible;
    if (isVisible && this._isStale) {
      void this.refresh();
    }
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    if (!this._disposed) {
      this._disposed = true;
      clearTimeout(this._timer);
      this._model.event.disconnect(this._onEvent, this);
      this._model.changed.disconnect(this._onModel, this);
      Signal.clearData(this);
    }
  }

  /** Ask now; an answer to an earlier question is dropped. */
  async refresh(): Promise<void> {
    clearTimeout(this._timer);
    this._isStale = false;
    const question = ++this._question;
    this._isLoading = true;
    this._changed.emit();
    let answer: Diff | ApiError;
    try {
      answer = await this._model.api.worktreeDiff(this.path, this._against, this.host);
    } catch (reason) {
      answer = ApiError.from(reason);
    }
    if (this._disposed || question !== this._question) {
      return;
    }
    this._isLoading = false;
    if (answer instanceof ApiError) {
      this._error = answer;
      this._isGone = GONE.has(answer.code);
    } else {
      this._error = null;
      this._isGone = false;
      this._diff = withKnown(answer, this._diff);
    }
    this._changed.emit();
  }

  /** Whether the reader ticked off this file, as it is now. */
  isViewed(file: FileDiff): boolean {
    const seen = this._viewed.get(file.path);
    return seen !== undefined && seen === fingerprint(file);
  }

  setViewed(file: FileDiff, isViewed: boolean): void {
    if (isViewed) {
      this._viewed.set(file.path, fingerprint(file));
    } else {
      this._viewed.delete(file.path);
    }
    this._changed.emit();
  }

  private _onEvent(_: OcmanModel, event: HostEvent): void {
    if (event.host !== this.host) {
      return;
    }
    const { type, data } = event;
    if (type === 'worktree.removed' && data.path === this.path) {
      clearTimeout(this._timer);
      this._question += 1;
      this._isLoading = false;
      this._isGone = true;
      this._changed.emit();
    } else if (type === 'worktree.changed' && (data.path === this.path || data.path === this._against)) {
      this._later();
    } else if (type === 'session.status' && data.status === 'idle' && this._isInside(data)) {
      this._later();
    }
  }

  private _isInside(data: { id: string; directory?: string }): boolean {
    const session: KnownSession | undefined = this._model.state.sessions.get(keyOf(this.host, data.id));
    const directory = session?.place ?? session?.directory ?? data.directory;
    return directory !== undefined && isWithin(directory, this.path);
  }

  /** What happened while there was no stream was not heard. */
  private _onModel(): void {
    const { phase }: ConnectionState = this._model.connection;
    if (phase !== this._phase) {
      this._phase = phase;
      if (phase === 'live' && (this._diff || this._error)) {
        this._later();
      }
    }
  }

  private _later(): void {
    this._isStale = true;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => {
      if (this._isVisible) {
        void this.refresh();
      }
    }, SETTLES);
  }

  private _against: string;
  private _diff: Diff | null = null;
  private _error: ApiError | null = null;
  private _isLoading = false;
  private _isGone = false;
  private _isVisible = false;
  private _isStale = true;
  private _question = 0;
  private _phase: ConnectionState['phase'];
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _disposed = false;
  /** By path: the fingerprint of what was seen. */
  private readonly _viewed = new Map<string, string>();
  private readonly _changed = new Signal<this, void>(this);
}

const GONE = new Set(['no_such_worktree', 'no_such_directory', 'directory_missing']);

/** The answer, with the very records of files that are as they were: views compare by identity. */
function withKnown(answer: Diff, earlier: Diff | null): Diff {
  const known = new Map(earlier?.files.map(file => [file.path, file]));
  const files = (answer.files ?? []).map(file => {
    const before = known.get(file.path);
    return before && isSame(before, file) ? before : file;
  });
  return { ...answer, files };
}

function isSame(a: FileDiff, b: FileDiff): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof FileDiff>;
  return [...names].every(name => {
    const [one, other]: unknown[] = [a[name], b[name]];
    return one === other || (typeof one === 'object' && JSON.stringify(one) === JSON.stringify(other));
  });
}

const fingerprints = new WeakMap<FileDiff, string>();

/** Short, and another one for another patch. */
function fingerprint(file: FileDiff): string {
  const known = fingerprints.get(file);
  if (known !== undefined) {
    return known;
  }
  const { status, additions, deletions, patch } = file;
  const found = [status, additions, deletions, patch?.length, patch && checksum(patch)].join(' ');
  fingerprints.set(file, found);
  return found;
}

/** Two independent sums of a text, 32 bits each. */
function checksum(text: string): string {
  let a = 0x811c9dc5;
  let b = 5381;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 0x01000193);
    b = (Math.imul(b, 33) + code) | 0;
  }
  return `${a} ${b}`;
}
