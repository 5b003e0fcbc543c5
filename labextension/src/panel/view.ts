/**
 * What the panel itself remembers: which rows are open, what is filtered, what is looked at.
 */
import { ISignal, Signal } from '@lumino/signaling';
import { IDisposable } from '@lumino/disposable';
import { LostWorktree, Subject } from '../subject';

/** What lasts over a reload of the page. */
export interface SavedView {
  toggled?: [string, boolean][];
  activeOnly?: boolean;
}

/** The form for a new worktree session; `repository`, or the one of `directory`, is chosen at first. */
export interface OpenForm {
  readonly repository: string | null;
  readonly directory?: string;
  /** To be made again. */
  readonly lost?: LostWorktree;
}

export class PanelView implements IDisposable {
  /** `save` is called with what should last, each time that it changes. */
  constructor(private _save: (saved: SavedView) => void = () => undefined) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get toggled(): ReadonlyMap<string, boolean> {
    return this._toggled;
  }

  get unfolded(): ReadonlySet<string> {
    return this._unfolded;
  }

  get filter(): string {
    return this._filter;
  }

  set filter(filter: string) {
    this._filter = filter;
    this._changed.emit();
  }

  get activeOnly(): boolean {
    return this._activeOnly;
  }

  set activeOnly(activeOnly: boolean) {
    this._activeOnly = activeOnly;
    this._keep();
  }

  /** The key of the session whose details are shown. */
  get session(): string | null {
    return this._session;
  }

  set session(key: string | null) {
    this._session = key;
    this._changed.emit();
  }

  /** The key of the session whose tab is in front. */
  get current(): string | null {
    return this._current;
  }

  set current(key: string | null) {
    if (key !== this._current) {
      this._current = key;
      this._changed.emit();
    }
  }

  /** The row that the keyboard is on; nothing is drawn from it. */
  target: Subject | null = null;

  /** The row that the open context menu is of. */
  menuTarget: Subject | null = null;

  get form(): OpenForm | null {
    return this._form;
  }

  set form(form: OpenForm | null) {
    this._form = form;
    this._changed.emit();
  }

  /** Whether a human can see the panel. */
  get isVisible(): boolean {
    return this._isVisible;
  }

  set isVisible(isVisible: boolean) {
    this._isVisible = isVisible;
    this._changed.emit();
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  toggle(key: string, open: boolean): void {
    this._toggled = new Map(this._toggled).set(key, open);
    this._keep();
  }

  unfold(key: string): void {
    this._unfolded = new Set(this._unfolded).add(key);
    this._changed.emit();
  }

  /** Take over what was saved, without writing it back. */
  restore(saved: SavedView): void {
    if (Array.isArray(saved.toggled)) {
      this._toggled = new Map([...saved.toggled, ...this._toggled]);
    }
    this._activeOnly = saved.activeOnly === true;
    this._changed.emit();
  }

  dispose(): void {
    this._disposed = true;
    Signal.clearData(this);
  }

  private _keep(): void {
    // The newest are kept: rows of things long gone do not pile up.
    this._save({ toggled: [...this._toggled].slice(-500), activeOnly: this._activeOnly });
    this._changed.emit();
  }

  private _toggled: ReadonlyMap<string, boolean> = new Map();
  private _unfolded: ReadonlySet<string> = new Set();
  private _filter = '';
  private _activeOnly = false;
  private _session: string | null = null;
  private _current: string | null = null;
  private _form: OpenForm | null = null;
  private _isVisible = false;
  private _disposed = false;
  private _changed = new Signal<this, void>(this);
}
