/**
 * The worktree sessions that this page asked for: from the request until they stand in the tree.
 */
import { UUID } from '@lumino/coreutils';
import { ISignal, Signal } from '@lumino/signaling';
import { Api } from './api';
import { ApiError } from './errors';
import { Notice, WorktreeRequest, WorktreeSession } from './records';
import { withEntry, without } from './state';

/** A worktree session that this page asked for, until its row stands in the tree. */
export interface Creation {
  /** Also the request's id, and the name of its `progress`. */
  readonly id: string;
  readonly request: WorktreeRequest;
  /** The key of the repository that it will belong to. */
  readonly repository: string;
  readonly phase: 'creating' | 'failed' | 'warned';
  readonly progress?: { message: string; fraction: number | null };
  readonly error?: ApiError;
  readonly warnings?: Notice[];
}

export class Creations {
  /** `arrive` is called with what was made; the row stays until it is done. */
  constructor(
    private _api: Api,
    private _arrive: (made: WorktreeSession) => Promise<void>
  ) {}

  /** By id. */
  get all(): ReadonlyMap<string, Creation> {
    return this._all;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** One is there. */
  get made(): ISignal<this, WorktreeSession> {
    return this._made;
  }

  /** Make a worktree session in the repository with this key.  Progress and errors are in `all`; nothing is thrown. */
  async create(request: WorktreeRequest, repository: string): Promise<void> {
    await this._create(UUID.uuid4(), request, repository);
  }

  /** Try a failed one again. */
  async retry(id: string): Promise<void> {
    const creation = this._all.get(id);
    if (creation?.phase !== 'failed') {
      return;
    }
    this.dismiss(id);
    // With the same id a request that did arrive is not done twice; one that the server refused needs a new id.
    const next = creation.error?.code === 'server_unreachable' ? id : UUID.uuid4();
    await this._create(next, creation.request, creation.repository);
  }

  dismiss(id: string): void {
    this._set(id, null);
  }

  /** The server tells how far a long operation is. */
  progress(data: { operation: string; message: string; fraction: number | null }): void {
    const creation = this._all.get(data.operation);
    if (creation?.phase === 'creating') {
      this._set(creation.id, {
        ...creation,
        progress: { message: data.message, fraction: data.fraction ?? null }
      });
    }
  }

  private async _create(id: string, wish: WorktreeRequest, repository: string): Promise<void> {
    const request = { ...wish, request_id: id };
    const creation: Creation = { id, request, repository, phase: 'creating' };
    this._set(id, creation);
    let made: WorktreeSession;
    try {
      made = await this._api.createWorktree(request);
    } catch (reason) {
      this._set(id, { ...creation, phase: 'failed', error: ApiError.from(reason) });
      return;
    }
    await this._arrive(made);
    const { warnings } = made;
    this._set(id, warnings?.length ? { ...creation, phase: 'warned', warnings } : null);
    this._made.emit(made);
  }

  private _set(id: string, creation: Creation | null): void {
    this._all = creation ? withEntry(this._all, id, creation) : without(this._all, id);
    this._changed.emit();
  }

  private _all: ReadonlyMap<string, Creation> = new Map();
  private _changed = new Signal<this, void>(this);
  private _made = new Signal<this, WorktreeSession>(this);
}
