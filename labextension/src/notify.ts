/**
 * When to tell people something that they do not see: a session needs them, or has finished.
 *
 * Never for what they look at, never twice for the same thing, and taken back as soon as it is over.
 */
import { IDisposable } from '@lumino/disposable';
import { OcmanModel } from './model';
import { KnownAsk, KnownSession, keyOf } from './state';

/** One thing to tell; there is one of each kind for a session at most. */
export interface Note {
  readonly kind: 'needs_you' | 'finished' | 'failed';
  readonly sessionKey: string;
  /** The session's title. */
  readonly title: string;
  /** The asks that wait, for `needs_you`. */
  readonly asks: readonly KnownAsk[];
}

export interface NotifierOptions {
  model: OcmanModel;
  /** Which kinds the user wants. */
  wants: (kind: Note['kind']) => boolean;
  /** Whether the user sees this session, or its ask, right now. */
  sees: (sessionKey: string, kind: Note['kind']) => boolean;
  /** Show it; `earlier` is what stood there before, to be replaced.  The id of what is shown. */
  show: (note: Note, earlier: string | null) => string;
  dismiss: (id: string) => void;
}

interface Shown {
  readonly id: string;
  readonly kind: Note['kind'];
  readonly sessionKey: string;
  /** The asks that it tells of. */
  readonly asks: string;
}

export class Notifier implements IDisposable {
  constructor(private _options: NotifierOptions) {
    _options.model.changed.connect(this.look, this);
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    this._disposed = true;
    this._options.model.changed.disconnect(this.look, this);
  }

  /** Compare what is with what was told; also to be called when something else came into sight. */
  look(): void {
    const { model } = this._options;
    if (!model.isLoaded || this._disposed) {
      return;
    }
    this._lookAtAsks();
    if (model.connection.phase === 'live') {
      this._lookAtSessions();
    }
    for (const [place, { id, kind, sessionKey }] of this._shown) {
      const isGone = kind !== 'needs_you' && !model.state.sessions.has(sessionKey);
      if (isGone || this._options.sees(sessionKey, kind)) {
        this._shown.delete(place);
        this._options.dismiss(id);
      }
    }
  }

  private _lookAtAsks(): void {
    const { state } = this._options.model;
    const open = new Map<string, [string, KnownAsk][]>();
    for (const [key, known] of state.asks) {
      if (known.phase === 'open') {
        const session = keyOf(known.ask.host, known.ask.session_id);
        open.set(session, [...(open.get(session) ?? []), [key, known]]);
      }
    }
    for (const [sessionKey, asks] of open) {
      const [[, { ask }]] = asks;
      const isNew = asks.some(([key]) => !this._told.has(key));
      const earlier = this._shown.get(placeOf('needs_you', sessionKey));
      const names = asks.map(([key]) => key).join(' ');
      // Seen once is told: leaving the tab later is no reason to be told again.
      asks.forEach(([key]) => this._told.add(key));
      if (isNew || (earlier && earlier.asks !== names)) {
        const title = state.sessions.get(sessionKey)?.title ?? ask.title;
        this._tell({ kind: 'needs_you', sessionKey, title, asks: asks.map(([, known]) => known) }, names);
      }
    }
    for (const [place, { id, kind, sessionKey }] of this._shown) {
      if (kind === 'needs_you' && !open.has(sessionKey)) {
        this._shown.delete(place);
        this._options.dismiss(id);
      }
    }
    for (const key of this._told) {
      if (!state.asks.has(key)) {
        this._told.delete(key);
      }
    }
  }

  private _lookAtSessions(): void {
    const { sessions } = this._options.model.state;
    for (const [sessionKey, session] of sessions) {
      const before = this._statuses.get(sessionKey);
      if (before === session.status || session.parent_id !== null) {
        continue;
      }
      if (isAtWork(session.status)) {
        // A new turn: how the last one ended is old news.
        this._takeBack('finished', sessionKey);
        this._takeBack('failed', sessionKey);
      } else if (before !== undefined && isAtWork(before)) {
        const kind = session.status === 'idle' ? 'finished' : session.status === 'error' ? 'failed' : null;
        if (kind) {
          this._tell({ kind, sessionKey, title: session.title, asks: [] }, '');
        }
      }
    }
    this._statuses = new Map([...sessions].map(([key, { status }]) => [key, status]));
  }

  private _tell(note: Note, asks: string): void {
    const { kind, sessionKey } = note;
    const { wants, sees, show } = this._options;
    if (!wants(kind) || sees(sessionKey, kind)) {
      return;
    }
    const place = placeOf(kind, sessionKey);
    const id = show(note, this._shown.get(place)?.id ?? null);
    this._shown.set(place, { id, kind, sessionKey, asks });
  }

  private _takeBack(kind: Note['kind'], sessionKey: string): void {
    const place = placeOf(kind, sessionKey);
    const shown = this._shown.get(place);
    if (shown) {
      this._shown.delete(place);
      this._options.dismiss(shown.id);
    }
  }

  /** What stands on the screen, by kind and session. */
  private readonly _shown = new Map<string, Shown>();
  /** The asks that were told or seen, by key. */
  private readonly _told = new Set<string>();
  private _statuses: ReadonlyMap<string, KnownSession['status']> = new Map();
  private _disposed = false;
}

function isAtWork(status: KnownSession['status']): boolean {
  return status === 'busy' || status === 'needs_you';
}

function placeOf(kind: Note['kind'], sessionKey: string): string {
  return `${kind} ${sessionKey}`;
}
