/**
 * The one model of a page: its state, fed by the events WebSocket, and everything that can be done.
 *
 * Views draw what is here when `changed` says so, and call its methods; they make no requests.
 */
import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { Api, AskReply } from './api';
import { Connection, ConnectionState } from './connection';
import { Creations } from './creations';
import { ApiError } from './errors';
import { SeenParts, touchedBy } from './follower';
import {
  Capabilities,
  HostEvent,
  LOCAL,
  Snapshot,
  WorktreePlan,
  WorktreeRequest,
  WorktreeSession
} from './records';
import * as reduce from './state';
import { EMPTY, KnownAsk, State, fromKey, keyOf } from './state';

/** What is known of the folder that the user is in. */
export interface Place {
  readonly directory: string;
  /** The key of its repository; `null` while it is asked for, or when there is none. */
  readonly repository: string | null;
  readonly error: ApiError | null;
}

export interface ModelOptions {
  api: Api;
  /** Version of this page's code, compared with the server's. */
  pageVersion: string;
}

/** How long an answered ask still stands in the list, in milliseconds. */
export const ANSWERED_STAYS = 2_000;

/** Who comes and goes within so many milliseconds has nothing read again. */
const LOOKED_AGAIN = 3_000;

/** Events that come together have the tree read once, in milliseconds. */
const READ_AFTER = 200;

/** While an agent edits, what it changed is counted anew so often, in milliseconds. */
const EDITS_READ_AFTER = 3_000;

/** Changes that come together are told together, in milliseconds. */
const TOLD_AFTER = 16;

export class OcmanModel implements IDisposable {
  constructor(options: ModelOptions) {
    this._api = options.api;
    this.pageVersion = options.pageVersion;
    this._connection = new Connection({
      open: () => this._api.openEvents(),
      diagnose: () => this._api.capabilities()
    });
    this.creations = new Creations(this._api, made => this._onMade(made));
    this.creations.changed.connect(() => this._tell());
    this._connection.stateChanged.connect(this._onConnection, this);
    this._connection.message.connect((_, message) => this._onMessage(message));
  }

  readonly pageVersion: string;

  /** Worktree sessions that this page asked for. */
  readonly creations: Creations;

  /** Something that views show is different now. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Every event of the stream, also those that this model does not keep, and `snapshot` where it begins anew. */
  get event(): ISignal<this, HostEvent> {
    return this._event;
  }

  get state(): State {
    return this._state;
  }

  get connection(): ConnectionState {
    return this._connection.state;
  }

  /** There was a snapshot: what is shown is, or was, true. */
  get isLoaded(): boolean {
    return this._isLoaded;
  }

  get capabilities(): Capabilities | null {
    return this._capabilities;
  }

  /** The server's version when it differs from the page's, else `null`. */
  get otherVersion(): string | null {
    const version = this._capabilities?.version;
    return version && version !== this.pageVersion ? version : null;
  }

  get place(): Place | null {
    return this._place;
  }

  get isRefreshing(): boolean {
    return this._refreshing > 0;
  }

  /** Errors of actions, by the key of what they were done to. */
  get errors(): ReadonlyMap<string, ApiError> {
    return this._errors;
  }

  get isDisposed(): boolean {
    return this._connection.isDisposed;
  }

  start(): void {
    this._connection.connect();
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    clearTimeout(this._telling);
    this._forgetting.forEach(timer => clearTimeout(timer));
    this._reading.forEach(({ timer }) => clearTimeout(timer));
    this._connection.dispose();
    Signal.clearData(this);
  }

  /** Connect now instead of waiting for the next attempt. */
  retry(): void {
    this._connection.connect();
  }

  /** Ask again for the tools, and for the worktrees of the given repositories. */
  async refresh(repositories: Iterable<string> = this._state.repositories.keys()): Promise<void> {
    if (this.connection.phase !== 'live') {
      this.retry();
      return;
    }
    this._refreshing += 1;
    this._tell();
    try {
      const directory = this._place?.directory;
      await Promise.all([
        this._loadCapabilities(),
        ...[...repositories].map(key => this._loadWorktrees(key)),
        directory !== undefined && !this._place?.repository ? this._locate(directory) : undefined
      ]);
    } finally {
      this._refreshing -= 1;
      this._tell();
    }
  }

  /** Ask once per snapshot for the slow parts (changes, ahead, behind, merged) of a repository's worktrees. */
  loadDetails(repository: string): void {
    if (this.connection.phase === 'live' && !this._detailed.has(repository)) {
      this._detailed.add(repository);
      void this._loadWorktrees(repository);
    }
  }

  /**
   * The user looks at the page again: read the worktrees that were looked at before.  What somebody did in a shell
   * comes with no event.
   */
  lookAgain(): void {
    if (this.connection.phase !== 'live') {
      this.retry();
    } else if (Date.now() - this._looked >= LOOKED_AGAIN) {
      this._looked = Date.now();
      this._detailed.forEach(repository => void this._loadWorktrees(repository));
    }
  }

  /** The user is in this folder now: find its repository. */
  async goTo(directory: string): Promise<void> {
    if (this._place?.directory === directory) {
      return;
    }
    this._place = { directory, repository: this._place?.repository ?? null, error: null };
    if (this.connection.phase === 'live') {
      await this._locate(directory);
    }
  }

  /** What a request would do; nothing is changed.  Rejects with an `ApiError`. */
  plan(request: WorktreeRequest): Promise<WorktreePlan> {
    return this._api.planWorktree(request);
  }

  /** Answer an ask.  The row says how it went; nothing is thrown. */
  async reply(key: string, reply: AskReply): Promise<void> {
    const known = this._state.asks.get(key);
    if (known?.phase !== 'open') {
      return;
    }
    const outcome = 'answers' in reply ? 'answered' : reply.reply;
    this._setState(reduce.sendingAsk(this._state, key, outcome));
    try {
      await this._api.replyAsk(known.ask.id, reply, known.ask.host);
      this._setState(reduce.closeAsk(this._state, key, outcome, true));
    } catch (reason) {
      const error = ApiError.from(reason);
      this._setState(
        error.code === 'not_found'
          ? reduce.closeAsk(this._state, key, 'gone', false)
          : reduce.failedAsk(this._state, key, { message: error.message, hint: error.hint })
      );
    }
  }

  /** Stop what a session does.  A failure is in `errors` under the session's key. */
  async abort(key: string): Promise<void> {
    const session = this._state.sessions.get(key);
    if (!session) {
      return;
    }
    this._setError(key, null);
    try {
      await this._api.abortSession(session.id, session.host);
    } catch (reason) {
      this._setError(key, ApiError.from(reason));
    }
  }

  /** Have a session's messages and their text come as events, until the watch is disposed. */
  watch(key: string): IDisposable {
    this._watched.set(key, (this._watched.get(key) ?? 0) + 1);
    this._subscribe();
    return new DisposableDelegate(() => {
      const left = (this._watched.get(key) ?? 1) - 1;
      if (left) {
        this._watched.set(key, left);
      } else {
        this._watched.delete(key);
      }
      this._subscribe();
    });
  }

  /** The calls of the server, for views that show what this model does not keep. */
  get api(): Api {
    return this._api;
  }

  dismissError(key: string): void {
    this._setError(key, null);
  }

  private _onConnection(_: Connection, state: ConnectionState): void {
    if (state.phase === 'live') {
      void this._loadCapabilities();
    }
    this._tell();
  }

  private _onMessage(message: any): void {
    if (message?.type === 'snapshot') {
      const snapshot: Snapshot = message.data ?? message;
      this._setState(reduce.applySnapshot(this._state, snapshot, message.host ?? LOCAL));
      this._isLoaded = true;
      // A snapshot comes without the slow parts.
      this._detailed.clear();
      this._subscribe();
      if (this._place) {
        void this._locate(this._place.directory);
      }
      this._event.emit({ type: 'snapshot', host: message.host ?? LOCAL, data: snapshot });
      return;
    }
    if (typeof message?.type !== 'string' || typeof message.data !== 'object' || message.data === null) {
      return;
    }
    const event: HostEvent = { ...message, host: message.host ?? LOCAL };
    if (event.type === 'progress') {
      this.creations.progress(event.data);
    } else if (event.type === 'error') {
      console.warn('ocman:', event.data.message);
    } else {
      this._setState(reduce.applyEvent(this._state, event));
      this._asking.forEach(newer => newer.add(keyOf(event.data.host ?? event.host, event.data.id ?? event.data.path)));
    }
    if (event.type === 'worktree.changed' && !reduce.repositoryOf(this._state, event.host, event.data.path)) {
      void this._loadWorktrees(keyOf(event.host, event.data.repo_root ?? event.data.path));
    } else {
      this._readSoon(doubtful(this._state, event));
    }
    if (event.type === 'ask.created') {
      // What was done so far is looked at before the answer.
      this._readSoon(counted(this._state, event));
    } else if (event.type === 'message.updated' && this._tellsOfEdits(event)) {
      this._readSoon(counted(this._state, event), EDITS_READ_AFTER);
    }
    this._event.emit(event);
  }

  /** A worktree session of this page was made: show it, whatever events came or did not. */
  private async _onMade(made: WorktreeSession): Promise<void> {
    const host = made.host || LOCAL;
    if (made.session) {
      const data = made.session;
      this._setState(reduce.applyEvent(this._state, { type: 'session.updated', host, data }));
    }
    if (!reduce.repositoryOf(this._state, host, made.worktree_path) || this._isLost(host, made.worktree_path)) {
      await this._loadWorktrees(keyOf(host, made.repo_root));
    }
  }

  /** Whether a session here is said to have lost this folder. */
  private _isLost(host: string, folder: string): boolean {
    return [...this._state.sessions.values()].some(
      ({ host: on, directory, status }) =>
        on === host && status === 'directory_missing' && reduce.isWithin(directory, folder)
    );
  }

  /** Whose text comes is chosen by the views that show it. */
  private _subscribe(): void {
    if (this.connection.phase === 'live') {
      const sessions = [...this._watched.keys()].map(key => fromKey(key).id);
      this._connection.send({ subscribe: { sessions } });
    }
  }

  private async _locate(directory: string): Promise<void> {
    let repository: string | null = null;
    let error: ApiError | null = null;
    try {
      repository = await this._ask(LOCAL, directory, false);
    } catch (reason) {
      error = ApiError.from(reason);
    }
    if (this._place?.directory === directory && !this.isDisposed) {
      this._place = { directory, repository, error };
      this._tell();
    }
  }

  private async _loadWorktrees(key: string): Promise<void> {
    const { host, id: root } = fromKey(key);
    try {
      await this._ask(host, root, true);
      this._setError(key, null);
    } catch (reason) {
      this._setError(key, ApiError.from(reason));
    }
  }

  private _tellsOfEdits(event: HostEvent): boolean {
    const { files, folders } = touchedBy(event, this._state, this._seen);
    return files.length > 0 || folders.length > 0;
  }

  /** Read the worktrees of a repository once for several events, as soon as one of them wants it. */
  private _readSoon(key: string | null, after = READ_AFTER): void {
    const due = Date.now() + after;
    const waiting = key !== null && this._reading.get(key);
    if (key === null || (waiting && waiting.due <= due)) {
      return;
    }
    if (waiting) {
      clearTimeout(waiting.timer);
    }
    const timer = setTimeout(() => {
      this._reading.delete(key);
      void this._loadWorktrees(key);
    }, after);
    this._reading.set(key, { timer, due });
  }

  /** Ask for the worktrees of a repository, and take over what no event has overtaken; its key. */
  private async _ask(host: string, directory: string, changes: boolean): Promise<string> {
    const newer = new Set<string>();
    this._asking.add(newer);
    try {
      const options = host === LOCAL && !changes ? { changes } : { changes, host };
      const list = await this._api.worktrees(directory, options);
      this._setState(reduce.applyWorktrees(this._state, list, host, newer));
      return keyOf(host, list.repo_root);
    } finally {
      this._asking.delete(newer);
    }
  }

  private async _loadCapabilities(): Promise<void> {
    try {
      this._capabilities = await this._api.capabilities();
      this._tell();
    } catch {
      // The connection notices that the server is gone; nothing to add here.
    }
  }

  private _setState(state: State): void {
    if (state === this._state || this.isDisposed) {
      return;
    }
    this._state = state;
    for (const [key, known] of state.asks) {
      this._forgetLater(key, known);
    }
    this._tell();
  }

  private _forgetLater(key: string, known: KnownAsk): void {
    if (known.phase === 'done' && !this._forgetting.has(key)) {
      const timer = setTimeout(() => {
        this._forgetting.delete(key);
        this._setState(reduce.forgetAsk(this._state, key));
      }, ANSWERED_STAYS);
      this._forgetting.set(key, timer);
    }
  }

  private _setError(key: string, error: ApiError | null): void {
    const errors = error ? reduce.withEntry(this._errors, key, error) : reduce.without(this._errors, key);
    if (errors !== this._errors) {
      this._errors = errors;
      this._tell();
    }
  }

  private _tell(): void {
    if (this._telling === undefined && !this.isDisposed) {
      this._telling = setTimeout(() => {
        this._telling = undefined;
        this._changed.emit();
      }, TOLD_AFTER);
    }
  }

  private readonly _api: Api;
  private readonly _connection: Connection;
  private _state: State = EMPTY;
  private _isLoaded = false;
  private _capabilities: Capabilities | null = null;
  private _place: Place | null = null;
  private _errors: ReadonlyMap<string, ApiError> = new Map();
  private _refreshing = 0;
  private _looked = 0;
  /** For each list that is asked for: the keys of what events changed since. */
  private readonly _asking = new Set<Set<string>>();
  /** How many views show a session, by its key. */
  private readonly _watched = new Map<string, number>();
  private readonly _detailed = new Set<string>();
  /** Repositories that will be read. */
  private readonly _reading = new Map<string, { timer: ReturnType<typeof setTimeout>; due: number }>();
  private readonly _seen = new SeenParts();
  private readonly _forgetting = new Map<string, ReturnType<typeof setTimeout>>();
  private _telling: ReturnType<typeof setTimeout> | undefined;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _event = new Signal<this, HostEvent>(this);
}

/** The repository whose tree says that a folder is there, or gone, while an event says otherwise. */
function doubtful(state: State, { type, host, data }: HostEvent): string | null {
  if (type === 'worktree.changed') {
    const isGone = data.state === 'missing';
    const isOther = [...state.sessions.values()].some(
      session =>
        session.host === host &&
        session.directory === data.path &&
        (session.status === 'directory_missing') !== isGone
    );
    return isOther ? (reduce.repositoryOf(state, host, data.path)?.key ?? null) : null;
  }
  if (type !== 'session.updated' && type !== 'session.status') {
    return null;
  }
  const repository = reduce.repositoryOf(state, host, data.directory);
  const worktree = repository?.worktrees.get(data.directory);
  const isGone = data.status === 'directory_missing';
  return worktree && (worktree.state === 'missing') !== isGone ? repository!.key : null;
}

/** The repository that says how much is changed in the worktree of an event's session; `null` if it was never asked. */
function counted(state: State, { host, data }: HostEvent): string | null {
  const session = state.sessions.get(keyOf(data.host ?? host, data.session_id));
  const folder = session && (session.place ?? session.directory);
  const repository = folder && reduce.repositoryOf(state, session.host, folder);
  return repository && repository.worktrees.get(folder)?.changes ? repository.key : null;
}
