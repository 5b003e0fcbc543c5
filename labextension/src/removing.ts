/**
 * The removal of one worktree, from the first look at what would be lost until it is gone.
 */
import { ISignal, Signal } from '@lumino/signaling';
import { Api } from './api';
import { ApiError } from './errors';
import { LossCode, LossReason, Removed, RemoveRequest } from './records';

/** The reasons whose files can be copied to a folder first. */
export const RESCUABLE = ['ignored', 'untracked', 'uncommitted'] as const;

export type Rescuable = (typeof RESCUABLE)[number];

export type Decision = 'accept' | 'rescue';

export interface RemovingOptions {
  api: Pick<Api, 'removal' | 'removeWorktree'>;
  path: string;
  host: string;
  /** Where rescued files go when the user says nothing else. */
  rescueTo: string;
}

export class Removing {
  constructor(private _options: RemovingOptions) {
    this._rescueTo = _options.rescueTo;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get path(): string {
    return this._options.path;
  }

  /** `looking`: what would be lost is asked for.  `failed`: that question got no answer. */
  get phase(): 'looking' | 'ready' | 'failed' | 'removing' | 'removed' {
    return this._phase;
  }

  get reasons(): readonly LossReason[] {
    return this._reasons;
  }

  /** Why the last look, or the last removal, did not work. */
  get error(): ApiError | null {
    return this._error;
  }

  /** What came up only after the user had decided. */
  get news(): ReadonlySet<LossCode> {
    return this._news;
  }

  /** What was done; also what was copied before a removal that did not work. */
  get result(): Removed | null {
    return this._result;
  }

  get deleteBranch(): boolean {
    return this._deleteBranch;
  }

  get rescueTo(): string {
    return this._rescueTo;
  }

  set rescueTo(folder: string) {
    this._rescueTo = folder;
    this._changed.emit();
  }

  decision(code: LossCode): Decision | null {
    return this._decisions.get(code) ?? null;
  }

  decide(code: LossCode, decision: Decision | null): void {
    if (decision && (decision !== 'rescue' || isRescuable(code))) {
      this._decisions.set(code, decision);
    } else {
      this._decisions.delete(code);
    }
    this._changed.emit();
  }

  get isRescuing(): boolean {
    return this._reasons.some(({ code }) => this._decisions.get(code) === 'rescue');
  }

  /** Bytes that would be copied. */
  get rescueBytes(): number {
    const chosen = this._reasons.filter(({ code }) => this._decisions.get(code) === 'rescue');
    return chosen.reduce((sum, reason) => sum + reason.total_bytes, 0);
  }

  /** Whether every reason is decided, so that the worktree can go. */
  get isReady(): boolean {
    const isDecided = this._reasons.every(({ code }) => this._decisions.has(code));
    const hasFolder = !this.isRescuing || this._rescueTo.trim().startsWith('/');
    return this._phase === 'ready' && isDecided && hasFolder;
  }

  /** Ask what would be lost.  What was decided stays where the reason is the same. */
  async look(): Promise<void> {
    const { api, path, host } = this._options;
    const look = ++this._looks;
    this._set('looking', null);
    try {
      const { reasons } = await api.removal(path, { deleteBranch: this._deleteBranch, host });
      if (look === this._looks) {
        this._take(reasons);
        this._set('ready', null);
      }
    } catch (reason) {
      if (look === this._looks) {
        this._set('failed', ApiError.from(reason));
      }
    }
  }

  /** With the branch other things may be lost: they are asked for anew. */
  async setDeleteBranch(deleteBranch: boolean): Promise<void> {
    if (this._phase !== 'removing' && this._phase !== 'removed') {
      this._deleteBranch = deleteBranch;
      await this.look();
    }
  }

  /** Remove it.  When that fails it says why, and what came up meanwhile wants a decision. */
  async remove(): Promise<void> {
    if (!this.isReady) {
      return;
    }
    this._news = new Set();
    this._set('removing', null);
    try {
      this._result = await this._options.api.removeWorktree(this._request());
      this._set('removed', null);
    } catch (reason) {
      const error = ApiError.from(reason);
      const { reasons, rescued } = error.details as Partial<Pick<Removed, 'rescued'>> & {
        reasons?: LossReason[];
      };
      if (rescued?.length) {
        this._result = { removed: true, branch_deleted: false, rescued };
      }
      if (error.code === 'would_lose_work' && Array.isArray(reasons)) {
        const decided = this._reasons.filter(known => !reasons.some(({ code }) => code === known.code));
        const before = new Map(this._reasons.map(known => [known.code, known]));
        this._news = new Set(reasons.filter(known => !isSame(known, before.get(known.code))).map(r => r.code));
        // What was rescued before it failed counts no more: only what is refused again is asked again.
        reasons.forEach(({ code }) => this._decisions.delete(code));
        this._reasons = [...decided, ...reasons];
      }
      this._set('ready', error);
    }
  }

  private _request(): RemoveRequest {
    const { path, host } = this._options;
    const of = (decision: Decision) =>
      this._reasons.map(({ code }) => code).filter(code => this._decisions.get(code) === decision);
    const rescue = of('rescue').filter(isRescuable);
    return {
      path,
      host,
      accept: of('accept'),
      delete_branch: this._deleteBranch,
      ...(rescue.length ? { rescue, rescue_to: this._rescueTo.trim() } : {})
    };
  }

  private _take(reasons: LossReason[]): void {
    const before = new Map(this._reasons.map(known => [known.code, known]));
    for (const [code] of this._decisions) {
      const now = reasons.find(reason => reason.code === code);
      if (!now || !isSame(now, before.get(code))) {
        this._decisions.delete(code);
      }
    }
    this._reasons = reasons;
  }

  private _set(phase: Removing['phase'], error: ApiError | null): void {
    this._phase = phase;
    this._error = error;
    this._changed.emit();
  }

  private _phase: 'looking' | 'ready' | 'failed' | 'removing' | 'removed' = 'looking';
  private _reasons: readonly LossReason[] = [];
  private _error: ApiError | null = null;
  private _news: ReadonlySet<LossCode> = new Set();
  private _result: Removed | null = null;
  private _deleteBranch = false;
  private _rescueTo: string;
  private _looks = 0;
  private readonly _decisions = new Map<LossCode, Decision>();
  private readonly _changed = new Signal<this, void>(this);
}

export function isRescuable(code: LossCode): code is Rescuable {
  return (RESCUABLE as readonly LossCode[]).includes(code);
}

/** Whether the very same would be lost. */
function isSame(a: LossReason, b: LossReason | undefined): boolean {
  return (
    b !== undefined &&
    a.total_bytes === b.total_bytes &&
    a.message === b.message &&
    a.items.length === b.items.length &&
    a.items.every(({ path, bytes }, i) => path === b.items[i].path && bytes === b.items[i].bytes)
  );
}

/** A folder beside the repository for what is rescued from a worktree today. */
export function rescueFolder(repositoryRoot: string, name: string, now: Date): string {
  const parent = repositoryRoot.replace(/\/+$/, '').replace(/\/[^/]*$/, '');
  const day = now.toISOString().slice(0, 10);
  const safe = name.replace(/[^\p{L}\p{N}._-]+/gu, '-') || 'worktree';
  return `${parent}/.worktrees-rescued/${safe}-${day}`;
}

/** The folder that files were copied to; `null` when none were. */
export function rescuedTo({ rescued }: Removed): string | null {
  if (!rescued.length) {
    return null;
  }
  const [{ path, to }] = rescued;
  // `to` is the whole path of the copy: what is before its own path is the folder.
  return to.endsWith(path) ? to.slice(0, -path.length).replace(/\/$/, '') : to;
}

/** A size as people read it: "512 B", "1.2 MB". */
export function sizeText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
