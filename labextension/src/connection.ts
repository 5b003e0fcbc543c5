/**
 * The one WebSocket of a page: opened, told apart when it fails, and opened again with back-off.
 */
import { ISignal, Signal } from '@lumino/signaling';
import { IDisposable } from '@lumino/disposable';
import { ApiError } from './errors';

/** Why there is no stream. */
export type Trouble = 'unreachable' | 'extension_missing' | 'unauthorized';

export type ConnectionState =
  | { phase: 'connecting' }
  | { phase: 'live' }
  /** `retryAt`: time of the next attempt in milliseconds since the epoch, `null` while one is under way. */
  | { phase: 'reconnecting'; trouble: Trouble; retryAt: number | null };

/** The part of the browser's WebSocket that is used. */
export interface Socket {
  onmessage: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  send(data: string): void;
  close(): void;
}

export interface ConnectionOptions {
  open: () => Socket;
  /** A plain request that tells why the WebSocket failed: rejects with an `ApiError`. */
  diagnose: () => Promise<unknown>;
  /** Number in [0, 1) that spreads the attempts of many pages. */
  random?: () => number;
}

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
const SNAPSHOT_DEADLINE = 20_000;
/** A stream that lived this long was a good one: the back-off begins anew. */
const PROVEN = 5_000;

/** Keeps one stream of JSON messages open for ever. */
export class Connection implements IDisposable {
  constructor(private _options: ConnectionOptions) {}

  get state(): ConnectionState {
    return this._state;
  }

  get stateChanged(): ISignal<this, ConnectionState> {
    return this._stateChanged;
  }

  /** Every message of the stream, parsed. */
  get message(): ISignal<this, any> {
    return this._message;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  /** Connect; when a next attempt is waited for, make it now. */
  connect(): void {
    if (this._disposed || this._socket) {
      return;
    }
    clearTimeout(this._timer);
    if (this._state.phase === 'reconnecting') {
      this._setState({ ...this._state, retryAt: null });
    }
    let socket: Socket;
    try {
      socket = this._options.open();
    } catch {
      void this._failed();
      return;
    }
    this._socket = socket;
    this._timer = setTimeout(() => this._drop(socket), SNAPSHOT_DEADLINE);
    socket.onmessage = event => {
      if (this._socket === socket) {
        this._receive(event.data);
      }
    };
    socket.onclose = () => this._drop(socket);
  }

  /** Send a message to the server, if there is a stream. */
  send(message: unknown): void {
    if (this._state.phase === 'live') {
      this._socket?.send(JSON.stringify(message));
    }
  }

  dispose(): void {
    if (this._disposed) {
      return;
    }
    this._disposed = true;
    clearTimeout(this._timer);
    const socket = this._socket;
    this._socket = null;
    socket?.close();
    Signal.clearData(this);
  }

  private _receive(text: unknown): void {
    let message: any;
    try {
      message = JSON.parse(String(text));
    } catch {
      console.warn('ocman: a message of the event stream is not JSON');
      return;
    }
    if (message?.type === 'snapshot' && this._state.phase !== 'live') {
      clearTimeout(this._timer);
      this._liveSince = Date.now();
      this._setState({ phase: 'live' });
    }
    this._message.emit(message);
  }

  private _drop(socket: Socket): void {
    if (this._socket !== socket) {
      return;
    }
    this._socket = null;
    socket.onmessage = socket.onclose = null;
    socket.close();
    void this._failed();
  }

  private async _failed(): Promise<void> {
    clearTimeout(this._timer);
    if (this._state.phase === 'live' && Date.now() - this._liveSince > PROVEN) {
      this._attempts = 0;
    }
    const earlier = this._state.phase === 'reconnecting' ? this._state.trouble : 'unreachable';
    this._setState({ phase: 'reconnecting', trouble: earlier, retryAt: null });
    const trouble = await this._diagnose();
    if (this._disposed || this._socket) {
      return;
    }
    const full = Math.min(FIRST_DELAY * 2 ** this._attempts, LONGEST_DELAY);
    this._attempts += 1;
    const delay = full * (0.5 + 0.5 * (this._options.random ?? Math.random)());
    this._timer = setTimeout(() => this.connect(), delay);
    this._setState({ phase: 'reconnecting', trouble, retryAt: Date.now() + delay });
  }

  private async _diagnose(): Promise<Trouble> {
    try {
      await this._options.diagnose();
    } catch (reason) {
      const { code } = ApiError.from(reason);
      if (code === 'extension_missing' || code === 'unauthorized') {
        return code;
      }
    }
    return 'unreachable';
  }

  private _setState(state: ConnectionState): void {
    this._state = state;
    if (!this._disposed) {
      this._stateChanged.emit(state);
    }
  }

  private _state: ConnectionState = { phase: 'connecting' };
  private _stateChanged = new Signal<this, ConnectionState>(this);
  private _message = new Signal<this, any>(this);
  private _socket: Socket | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _attempts = 0;
  private _liveSince = 0;
  private _disposed = false;
}
