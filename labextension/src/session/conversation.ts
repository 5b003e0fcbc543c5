/**
 * One session's conversation: its messages and todos, read by pages and kept up to date by the stream.
 */
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import { ApiError } from '../errors';
import { OcmanModel } from '../model';
import { HostEvent, Message, Session, Todo } from '../records';
import { KnownSession, fromKey } from '../state';
import {
  Delta,
  EMPTY_LOG,
  Log,
  applyDelta,
  applyEarlier,
  applyMessage,
  applyNewest,
  isSamePart,
  restart,
  trim
} from './messages';
import { NO_QUEUE, Queue, promptText, queuedIn } from './prompts';
import { Todos } from './todos';

/** As many messages are read at once. */
export const PAGE = 100;
/** While the reader is at the end, older messages than so many are let go. */
export const MOST_KEPT = 400;
const KEPT = 300;
/** What the stream tells within so many milliseconds is drawn at once. */
export const DRAWN_AFTER = 50;

export class Conversation implements IDisposable {
  /** Reads by itself as soon as there is a connection, and again after each gap in the stream. */
  constructor(
    readonly model: OcmanModel,
    readonly sessionKey: string
  ) {
    const { host, id } = fromKey(sessionKey);
    this.host = host;
    this.id = id;
    this._session = model.state.sessions.get(sessionKey) ?? null;
    this._todos = new Todos(model, { host, id }, () => this._tell());
    this._watch = model.watch(sessionKey);
    model.event.connect(this._onEvent, this);
    model.changed.connect(this._onModel, this);
    if (model.connection.phase === 'live') {
      void this.load();
    }
  }

  readonly host: string;
  readonly id: string;

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** `null` while nothing is known of it. */
  get session(): KnownSession | null {
    return this._session;
  }

  /** Oldest first. */
  get messages(): readonly Message[] {
    return this._log.messages;
  }

  /** Prompts that wait until the running turn is over. */
  get queued(): Queue {
    return this._queued;
  }

  get todos(): readonly Todo[] {
    return this._todos.all;
  }

  get hasEarlier(): boolean {
    return this._log.next !== null;
  }

  /** The messages were read at least once. */
  get isLoaded(): boolean {
    return this._log.loaded;
  }

  get isLoading(): boolean {
    return this._loading !== null;
  }

  get isLoadingEarlier(): boolean {
    return this._loadingEarlier;
  }

  /** A turn runs, or waits for an answer. */
  get isBusy(): boolean {
    return this._session?.status === 'busy' || this._session?.status === 'needs_you';
  }

  /** An OpenCode is being started for it. */
  get isStarting(): boolean {
    return this._starting;
  }

  /** The session was deleted. */
  get isRemoved(): boolean {
    return this._removed || this._error?.code === 'no_such_session';
  }

  /** Why the messages could not be read. */
  get error(): ApiError | null {
    return this._error;
  }

  /** Why the last thing that was asked for here failed. */
  get actionError(): ApiError | null {
    return this._actionError ?? this.model.errors.get(this.sessionKey) ?? null;
  }

  /** Whether the reader is at the end, and does not miss what goes at the beginning. */
  get isFollowed(): boolean {
    return this._followed;
  }

  set isFollowed(isFollowed: boolean) {
    this._followed = isFollowed;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    if (this._disposed) {
      return;
    }
    this._disposed = true;
    clearTimeout(this._drawing);
    this._todos.dispose();
    this._watch.dispose();
    this.model.event.disconnect(this._onEvent, this);
    this.model.changed.disconnect(this._onModel, this);
    Signal.clearData(this);
  }

  /** Read the newest messages, and the todos.  A failure is in `error`. */
  async load(): Promise<void> {
    const { api } = this.model;
    const mine = (this._loading = {});
    const isStale = () => this._loading !== mine || this._disposed;
    this._tell();
    void this._todos.load();
    const unknown = this.model.state.sessions.has(this.sessionKey)
      ? Promise.resolve(null)
      : // A subagent's session is in nobody's list.
        api.session(this.id, this.host).catch(() => null);
    try {
      const page = await api.messages(this.id, { limit: PAGE, host: this.host });
      if (isStale()) {
        return;
      }
      this._flush();
      this._log = applyNewest(this._log, page);
      this._error = null;
    } catch (reason) {
      if (isStale()) {
        return;
      }
      this._error = ApiError.from(reason);
    }
    const own = await unknown;
    if (isStale()) {
      return;
    }
    this._own = own ?? this._own;
    this._loading = null;
    this._takeSession();
    this._tell();
  }

  /** Read the page before the first message.  A failure is in `actionError`. */
  async loadEarlier(): Promise<void> {
    const { next } = this._log;
    if (next === null || this._loadingEarlier || this._disposed) {
      return;
    }
    this._loadingEarlier = true;
    this._tell();
    await this._act(async () => {
      const page = await this.model.api.messages(this.id, { limit: PAGE, before: next, host: this.host });
      if (this._log.next === next) {
        this._log = applyEarlier(this._log, page);
      }
    });
    this._loadingEarlier = false;
    this._tell();
  }

  /** Start an OpenCode that serves this session, then read it. */
  async start(): Promise<void> {
    const directory = this._session?.repo_root ?? this._session?.directory;
    if (!directory || this._starting) {
      return;
    }
    this._starting = true;
    this._tell();
    const started = await this._act(() => this.model.api.ensure(directory, this.host));
    this._starting = false;
    if (started) {
      await this.load();
    } else {
      this._tell();
    }
  }

  /** Stop the running turn. */
  async abort(): Promise<void> {
    if (this.model.state.sessions.has(this.sessionKey)) {
      await this.model.abort(this.sessionKey);
    } else {
      await this._act(() => this.model.api.abortSession(this.id, this.host));
    }
  }

  /** Send the last prompt again, after its turn failed. */
  async resend(): Promise<void> {
    const prompts = this.messages.filter(message => message.info.role === 'user' && promptText(message));
    const last = prompts[prompts.length - 1];
    if (!last) {
      return;
    }
    const { agent, model } = last.info as { agent?: string; model?: { providerID: string; modelID: string } };
    const request = {
      text: promptText(last),
      agent: agent ?? null,
      model: model ? `${model.providerID}/${model.modelID}` : null
    };
    await this._act(() => this.model.api.prompt(this.id, request, this.host));
  }

  dismissError(): void {
    this._actionError = null;
    this.model.dismissError(this.sessionKey);
    this._tell();
  }

  /** Do something; whether it went well.  What went wrong is in `actionError`. */
  private async _act(action: () => Promise<unknown>): Promise<boolean> {
    this._actionError = null;
    try {
      await action();
      return true;
    } catch (reason) {
      this._actionError = ApiError.from(reason);
      return false;
    } finally {
      this._tell();
    }
  }

  private _onEvent(_: OcmanModel, event: HostEvent): void {
    const { data } = event;
    if (event.host !== this.host) {
      return;
    }
    switch (event.type) {
      case 'snapshot':
        this._begin();
        break;
      case 'instance.changed':
        // Another process: what it says may have begun before it is listened to.
        if ((data.state ?? 'running') === 'running' && data.repo_root === this._session?.repo_root) {
          this._begin();
        }
        break;
      case 'message.updated':
      case 'message.delta':
        if (data.session_id === this.id) {
          this._pending.push(event);
          this._later();
        }
        break;
      case 'session.removed':
        if (data.id === this.id) {
          this._removed = true;
          this._later();
        }
        break;
      case 'session.status':
        if (data.id === this.id && this._own) {
          this._own = { ...this._own, status: data.status, error: data.error ?? null, retry: data.retry };
          this._takeSession();
        }
    }
  }

  /** The stream begins anew. */
  private _begin(): void {
    this._flush();
    this._log = restart(this._log);
    void this.load();
  }

  private _onModel(): void {
    this._takeSession();
    const { errors, connection } = this.model;
    const error = errors.get(this.sessionKey);
    if (error !== this._shownError || connection !== this._shownConnection) {
      this._shownError = error;
      this._shownConnection = connection;
      this._tell();
    }
  }

  /** What the model knows of the session now. */
  private _takeSession(): void {
    const before = this._session;
    const session = this.model.state.sessions.get(this.sessionKey) ?? this._own ?? before;
    if (session === before) {
      return;
    }
    const wasBusy = this.isBusy;
    this._session = session;
    if (wasBusy && !this.isBusy) {
      void this._todos.load();
      this._flush();
      if (this._log.unsure.size) {
        void this.load();
      }
    }
    this._later();
  }

  /** Take over what the stream told since the last time. */
  private _flush(): void {
    const events = this._pending;
    this._pending = [];
    let joined: Delta | null = null;
    const grow = () => {
      if (joined) {
        this._log = applyDelta(this._log, joined);
        joined = null;
      }
    };
    for (const { type, data } of events) {
      if (type === 'message.delta') {
        const delta: Delta = data;
        if (joined && isSamePart(joined, delta)) {
          joined = { ...(joined as Delta), delta: (joined as Delta).delta + delta.delta };
        } else {
          grow();
          joined = delta;
        }
      } else {
        grow();
        this._log = applyMessage(this._log, data.message);
        this._todos.follow(data.message);
      }
    }
    grow();
    if (this._followed && this._log.messages.length > MOST_KEPT) {
      this._log = trim(this._log, KEPT);
    }
  }

  private _later(): void {
    if (this._drawing === undefined && !this._disposed) {
      this._drawing = setTimeout(() => {
        this._flush();
        this._tell();
      }, DRAWN_AFTER);
    }
  }

  private _tell(): void {
    clearTimeout(this._drawing);
    this._drawing = undefined;
    if (this._disposed) {
      return;
    }
    if (this._pending.length) {
      this._flush();
    }
    this._queued = this.isBusy ? queuedIn(this.messages, this._queued) : NO_QUEUE;
    this._changed.emit();
  }

  private _log: Log = EMPTY_LOG;
  private _session: KnownSession | null;
  /** The session as the server told it, where no list has it. */
  private _own: Session | null = null;
  private _queued: Queue = NO_QUEUE;
  private _pending: HostEvent[] = [];
  private _loading: object | null = null;
  private _loadingEarlier = false;
  private _starting = false;
  private _removed = false;
  private _followed = true;
  private _error: ApiError | null = null;
  private _actionError: ApiError | null = null;
  private _shownError: ApiError | undefined;
  private _shownConnection: unknown;
  private _drawing: ReturnType<typeof setTimeout> | undefined;
  private readonly _todos: Todos;
  private readonly _watch: IDisposable;
  private _disposed = false;
  private readonly _changed = new Signal<this, void>(this);
}
