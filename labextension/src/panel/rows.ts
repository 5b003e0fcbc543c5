/**
 * The tree as a flat list of rows: what is shown, in which order, and how much a filter hides.  Pure.
 *
 * Every row has the same height and knows its place among its siblings, so that a list can draw any part of it.
 */
import { Creation } from '../creations';
import { Instance, SessionStatus, Worktree } from '../records';
import { KnownSession, Repository, State, isWithin, keyOf } from '../state';

interface RowBase {
  readonly key: string;
  readonly level: number;
  /** `null`: has nothing below it. */
  readonly expanded: boolean | null;
  readonly position: number;
  readonly siblings: number;
  /** The key of the row that this one belongs to. */
  readonly parent: string | null;
}

export interface RepositoryRow extends RowBase {
  readonly kind: 'repository';
  readonly repository: Repository;
  readonly instance: Instance | undefined;
  readonly here: boolean;
  /** The folder that holds it, when another repository has the same name. */
  readonly folder: string | null;
  readonly worktrees: number;
  readonly busy: number;
  readonly needsYou: number;
}

export interface WorktreeRow extends RowBase {
  readonly kind: 'worktree';
  readonly repository: Repository;
  readonly worktree: Worktree;
  readonly sessions: number;
  readonly status: SessionStatus | null;
}

/** Sessions of a repository, or of none, whose directory is not one of the worktrees. */
export interface ElsewhereRow extends RowBase {
  readonly kind: 'elsewhere';
  readonly sessions: number;
  readonly status: SessionStatus | null;
}

export interface SessionRow extends RowBase {
  readonly kind: 'session';
  readonly session: KnownSession;
}

export interface CreationRow extends RowBase {
  readonly kind: 'creation';
  readonly creation: Creation;
}

/** Older sessions that are not listed until they are asked for. */
export interface MoreRow extends RowBase {
  readonly kind: 'more';
  readonly hidden: number;
}

export type Row = RepositoryRow | WorktreeRow | ElsewhereRow | SessionRow | CreationRow | MoreRow;

export interface View {
  /** What the user opened or closed, by row key. */
  readonly toggled: ReadonlyMap<string, boolean>;
  /** Rows whose older sessions were asked for. */
  readonly unfolded: ReadonlySet<string>;
  readonly filter: string;
  readonly activeOnly: boolean;
  /** The repository of the folder that the user is in. */
  readonly here: string | null;
}

export interface Tree {
  readonly rows: readonly Row[];
  /** How many worktrees and sessions the filter hides. */
  readonly hidden: number;
}

/** As many sessions of one worktree are listed at first. */
export const SESSIONS_AT_FIRST = 30;

const URGENCY: SessionStatus[] = ['needs_you', 'error', 'busy', 'directory_missing', 'unknown', 'idle'];

/** The status that matters most; `null` without any session. */
export function mostUrgent(sessions: readonly { status: SessionStatus }[]): SessionStatus | null {
  return URGENCY.find(status => sessions.some(session => session.status === status)) ?? null;
}

export function isActive(session: { status: SessionStatus }): boolean {
  return session.status === 'needs_you' || session.status === 'busy' || session.status === 'error';
}

export function buildTree(state: State, creations: ReadonlyMap<string, Creation>, view: View): Tree {
  const builder = new Builder(state, creations, view);
  return { rows: builder.build(), hidden: builder.hidden };
}

/** A group before it is laid out. */
type Draft = {
  [K in Row['kind']]: Omit<Extract<Row, { kind: K }>, keyof RowBase> & { key: string };
}[Row['kind']] & {
  children?: Draft[];
  open?: boolean;
};

class Builder {
  constructor(
    private _state: State,
    private _creations: ReadonlyMap<string, Creation>,
    private _view: View
  ) {
    this._query = fold(_view.filter.trim());
    this._filtering = this._query !== '' || _view.activeOnly;
    this._place();
  }

  hidden = 0;

  build(): Row[] {
    const drafts: Draft[] = [];
    const repositories = [...this._state.repositories.values()].sort(
      (a, b) =>
        Number(b.key === this._view.here) - Number(a.key === this._view.here) ||
        byName(a.name, b.name) ||
        byName(a.root, b.root)
    );
    for (const repository of repositories) {
      const draft = this._repository(repository);
      if (draft) {
        drafts.push(draft);
      }
    }
    const nowhere = this._elsewhere('nowhere', this._inFolder.get('') ?? [], false);
    if (nowhere) {
      drafts.push(nowhere);
    }
    const rows: Row[] = [];
    this._layOut(drafts, 1, null, rows);
    return rows;
  }

  /** Find each session's worktree: the nearest one at or above its directory. */
  private _place(): void {
    const worktrees = new Map<string, string>();
    for (const { host, key, worktrees: known } of this._state.repositories.values()) {
      for (const path of known.keys()) {
        worktrees.set(keyOf(host, path), key);
      }
    }
    for (const session of this._state.sessions.values()) {
      if (session.parent_id !== null) {
        // A subagent's session is a part of its parent's work.
        continue;
      }
      let folder: string | null = session.place ?? session.directory;
      while (folder !== null && !worktrees.has(keyOf(session.host, folder))) {
        folder = parentOf(folder);
      }
      const repository = session.repo_root && keyOf(session.host, session.repo_root);
      const group =
        folder !== null
          ? keyOf(session.host, folder)
          : repository && this._state.repositories.has(repository)
            ? `elsewhere\n${repository}`
            : '';
      const list = this._inFolder.get(group) ?? [];
      list.push(session);
      this._inFolder.set(group, list);
    }
    for (const list of this._inFolder.values()) {
      // By age and not by last change: rows do not jump while agents work.
      list.sort((a, b) => (a.created < b.created ? 1 : a.created > b.created ? -1 : 0));
    }
  }

  private _repository(repository: Repository): Draft | null {
    const matched = this._matches(repository.name);
    const children: Draft[] = [];
    const all: KnownSession[] = [];
    for (const creation of this._creations.values()) {
      if (creation.repository === repository.key) {
        children.push({ kind: 'creation', key: `creation\n${creation.id}`, creation });
      }
    }
    const worktrees = [...repository.worktrees.values()].sort(
      (a, b) => Number(b.is_main) - Number(a.is_main) || byName(a.branch ?? a.name, b.branch ?? b.name)
    );
    for (const worktree of worktrees) {
      const sessions = this._inFolder.get(keyOf(repository.host, worktree.path)) ?? [];
      all.push(...sessions);
      const draft = this._worktree(repository, worktree, sessions, matched);
      if (draft) {
        children.push(draft);
      }
    }
    const others = this._inFolder.get(`elsewhere\n${repository.key}`) ?? [];
    all.push(...others);
    const elsewhere = this._elsewhere(`elsewhere\n${repository.key}`, others, matched);
    if (elsewhere) {
      children.push(elsewhere);
    }
    if (this._filtering && !children.length) {
      return null;
    }
    const here = repository.key === this._view.here;
    const namesakes = [...this._state.repositories.values()].filter(other => other.name === repository.name);
    return {
      kind: 'repository',
      key: repository.key,
      repository,
      instance: this._state.instances.get(repository.key),
      here,
      folder: namesakes.length > 1 ? parentOf(repository.root) : null,
      worktrees: repository.worktrees.size,
      busy: all.filter(session => session.status === 'busy').length,
      needsYou: all.filter(session => session.status === 'needs_you').length,
      children,
      open: here || this._state.repositories.size === 1 || all.some(isActive)
    };
  }

  private _worktree(
    repository: Repository,
    worktree: Worktree,
    sessions: KnownSession[],
    matched: boolean
  ): Draft | null {
    const named = matched || this._matches(worktree.name) || this._matches(worktree.branch ?? '');
    const shown = this._sessions(sessions, named);
    if (this._filtering && !shown.length && (this._view.activeOnly || !named)) {
      this.hidden += 1;
      return null;
    }
    // The main checkout has its repository's path: the kind tells the two rows apart.
    const key = `worktree\n${keyOf(repository.host, worktree.path)}`;
    const status = mostUrgent(sessions);
    return {
      kind: 'worktree',
      key,
      repository,
      worktree,
      sessions: sessions.length,
      status,
      children: this._capped(key, shown),
      open: true
    };
  }

  private _elsewhere(key: string, sessions: KnownSession[], matched: boolean): Draft | null {
    const shown = this._sessions(sessions, matched);
    if (!shown.length) {
      return null;
    }
    const status = mostUrgent(sessions);
    return {
      kind: 'elsewhere',
      key,
      sessions: sessions.length,
      status,
      children: this._capped(key, shown),
      open: false
    };
  }

  private _sessions(sessions: KnownSession[], matched: boolean): KnownSession[] {
    if (!this._filtering) {
      return sessions;
    }
    const shown = sessions.filter(
      session => (matched || this._matches(session.title)) && (!this._view.activeOnly || isActive(session))
    );
    this.hidden += sessions.length - shown.length;
    return shown;
  }

  private _capped(parent: string, sessions: KnownSession[]): Draft[] {
    const all = sessions.length <= SESSIONS_AT_FIRST + 1 || this._view.unfolded.has(parent);
    const shown = all
      ? sessions
      : sessions.filter((session, i) => i < SESSIONS_AT_FIRST || isActive(session));
    const drafts: Draft[] = shown.map(session => ({
      kind: 'session',
      key: `session\n${keyOf(session.host, session.id)}`,
      session
    }));
    if (shown.length < sessions.length) {
      drafts.push({ kind: 'more', key: `more\n${parent}`, hidden: sessions.length - shown.length });
    }
    return drafts;
  }

  private _layOut(drafts: Draft[], level: number, parent: string | null, rows: Row[]): void {
    drafts.forEach(({ children = [], open = false, ...draft }, i) => {
      const expanded = children.length
        ? this._filtering || (this._view.toggled.get(draft.key) ?? open)
        : null;
      rows.push({ ...draft, level, expanded, position: i + 1, siblings: drafts.length, parent } as Row);
      if (expanded) {
        this._layOut(children, level + 1, draft.key, rows);
      }
    });
  }

  private _matches(text: string): boolean {
    return fold(text).includes(this._query);
  }

  private _query: string;
  private _filtering: boolean;
  /** Sessions by what they stand under: a worktree's key, `elsewhere` of a repository, or `''`. */
  private _inFolder = new Map<string, KnownSession[]>();
}

/** The key of the session of a row, as the model knows it. */
export function sessionKey(row: SessionRow): string {
  return keyOf(row.session.host, row.session.id);
}

/** The worktree that a session of this directory works in. */
export function worktreeOf(state: State, session: KnownSession): Worktree | undefined {
  let found: Worktree | undefined;
  for (const repository of state.repositories.values()) {
    for (const worktree of repository.host === session.host ? repository.worktrees.values() : []) {
      const longer = !found || worktree.path.length > found.path.length;
      if (longer && isWithin(session.place ?? session.directory, worktree.path)) {
        found = worktree;
      }
    }
  }
  return found;
}

function parentOf(path: string): string | null {
  const cut = path.replace(/\/+$/, '').lastIndexOf('/');
  return cut < 0 ? null : cut === 0 ? (path === '/' ? null : '/') : path.slice(0, cut);
}

const COLLATOR = new Intl.Collator(undefined, { numeric: true });

function byName(a: string, b: string): number {
  return COLLATOR.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0);
}

function fold(text: string): string {
  return text.normalize('NFKC').toLocaleLowerCase();
}
