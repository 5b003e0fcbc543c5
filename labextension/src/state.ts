/**
 * What a page knows, and how each message of the server changes it.  Pure: no requests, no clocks.
 *
 * Every change gives a new `State` that shares all that stayed the same, so that views compare by identity.
 */
import {
  Ask,
  Base,
  HostEvent,
  Instance,
  LOCAL,
  PermissionReply,
  Retry,
  Session,
  SessionStatus,
  Snapshot,
  Worktree,
  WorktreeList
} from './records';

export interface Repository {
  readonly key: string;
  readonly host: string;
  readonly root: string;
  readonly name: string;
  readonly defaultBase: Base | null;
  /** By path. */
  readonly worktrees: ReadonlyMap<string, Worktree>;
  /** The branch that each worktree had last, by path: also of those that are gone. */
  readonly branches: ReadonlyMap<string, string>;
}

/** A session, and the worktree that the server said it works in (its directory may be a link to it). */
export type KnownSession = Session & { readonly place?: string };

/**
 * An ask from its arrival until a moment after it was answered.
 *
 * `sending`: an answer of this page is on its way.  `done`: it is over; `outcome` says how, `mine` who.
 */
export interface KnownAsk {
  readonly ask: Ask;
  readonly phase: 'open' | 'sending' | 'done';
  readonly reply?: Outcome;
  readonly mine?: boolean;
  /** Why the last answer of this page was not taken. */
  readonly error?: { message: string; hint: string | null };
}

/** `gone`: answered or withdrawn, and nobody said how. */
export type Outcome = PermissionReply | 'answered' | 'gone';

export interface State {
  readonly repositories: ReadonlyMap<string, Repository>;
  readonly sessions: ReadonlyMap<string, KnownSession>;
  /** In order of arrival. */
  readonly asks: ReadonlyMap<string, KnownAsk>;
  readonly instances: ReadonlyMap<string, Instance>;
}

export const EMPTY: State = {
  repositories: new Map(),
  sessions: new Map(),
  asks: new Map(),
  instances: new Map()
};

/** Name of a thing that only its host makes unique. */
export function keyOf(host: string | undefined, id: string): string {
  return `${host || LOCAL}\n${id}`;
}

/** The host and the id that made a key; a path may hold a newline, a host's id does not. */
export function fromKey(key: string): { host: string; id: string } {
  const cut = key.indexOf('\n');
  return { host: key.slice(0, cut), id: key.slice(cut + 1) };
}

/** The last component of a path. */
export function baseName(path: string): string {
  return path.replace(/\/+$/, '').split('/').pop() || path;
}

/** Whether `path` is `folder` or lies in it; by components, so that `/a/bc` is not in `/a/b`. */
export function isWithin(path: string, folder: string): boolean {
  const prefix = folder.endsWith('/') ? folder : folder + '/';
  return path === folder || path.startsWith(prefix);
}

// --- all at once ---------------------------------------------------------------------------------

/** Everything of one host anew: what its snapshot does not hold is gone. */
export function applySnapshot(state: State, snapshot: Snapshot, host: string = LOCAL): State {
  const instances = ofOthers(state.instances, host);
  for (const instance of snapshot.instances ?? []) {
    instances.set(keyOf(host, instance.repo_root), instance);
  }
  const sessions = ofOthers(state.sessions, host);
  for (const session of snapshot.sessions ?? []) {
    sessions.set(keyOf(session.host, session.id), session);
  }
  let next: State = {
    instances,
    sessions,
    repositories: ofOthers(state.repositories, host),
    asks: keptAsks(state, snapshot, host)
  };
  for (const list of snapshot.repositories ?? []) {
    next = mergeWorktrees(next, list, host, state.repositories.get(keyOf(host, list.repo_root)));
  }
  return next;
}

function ofOthers<V>(map: ReadonlyMap<string, V>, host: string): Map<string, V> {
  return new Map([...map].filter(([key]) => fromKey(key).host !== host));
}

/**
 * One repository's worktrees as `GET worktrees` answers them.
 *
 * `newer` holds the keys of sessions and worktrees that events changed while the answer was on its way: those are
 * known better already.
 */
export function applyWorktrees(
  state: State,
  list: WorktreeList,
  host: string = LOCAL,
  newer: ReadonlySet<string> = new Set()
): State {
  return mergeWorktrees(state, list, host, state.repositories.get(keyOf(host, list.repo_root)), newer);
}

function mergeWorktrees(
  state: State,
  list: WorktreeList,
  host: string,
  earlier: Repository | undefined,
  newer: ReadonlySet<string> = new Set()
): State {
  const key = keyOf(host, list.repo_root);
  const worktrees = new Map<string, Worktree>();
  const sessions = new Map(state.sessions);
  const put = (session: Session, more: Partial<KnownSession>) => {
    const id = keyOf(session.host, session.id);
    const known = sessions.get(id);
    if (!newer.has(id)) {
      sessions.set(id, { ...session, ...more });
    } else if (known) {
      sessions.set(id, { ...known, ...more });
    }
  };
  for (const { sessions: inside, ...worktree } of list.worktrees) {
    const known = earlier?.worktrees.get(worktree.path);
    if (!newer.has(keyOf(host, worktree.path))) {
      worktrees.set(worktree.path, withKnownDetails(worktree, known));
    } else if (known) {
      worktrees.set(worktree.path, withKnownDetails(known, worktree));
    }
    for (const session of inside ?? []) {
      put(session, { place: worktree.path });
    }
  }
  for (const [path, known] of earlier?.worktrees ?? []) {
    if (!worktrees.has(path) && newer.has(keyOf(host, path))) {
      worktrees.set(path, known);
    }
  }
  for (const session of list.sessions_elsewhere ?? []) {
    put(session, { repo_root: session.repo_root ?? list.repo_root });
  }
  const branches = new Map(earlier?.branches);
  for (const { path, branch } of worktrees.values()) {
    if (branch !== null) {
      branches.set(path, branch);
    }
  }
  const repository: Repository = {
    key,
    host,
    root: list.repo_root,
    name: baseName(list.repo_root).replace(/\.git$/, ''),
    defaultBase: list.default_base,
    worktrees,
    branches
  };
  return { ...state, sessions, repositories: withEntry(state.repositories, key, repository) };
}

/** A list without its slow parts does not wipe out what was known of the same commit. */
function withKnownDetails(worktree: Worktree, earlier: Worktree | undefined): Worktree {
  if (!earlier || worktree.changes !== null || earlier.changes === null || earlier.head !== worktree.head) {
    return worktree;
  }
  const { changes, ahead, behind, merged } = earlier;
  return {
    ...worktree,
    changes,
    ahead,
    behind,
    merged: worktree.merged === 'unknown' ? merged : worktree.merged
  };
}

function keptAsks(state: State, snapshot: Snapshot, host: string): ReadonlyMap<string, KnownAsk> {
  const asks = new Map<string, KnownAsk>();
  const open = new Map((snapshot.asks ?? []).map(ask => [keyOf(ask.host, ask.id), ask]));
  for (const [key, known] of state.asks) {
    const ask = open.get(key);
    if (fromKey(key).host !== host) {
      asks.set(key, known);
    } else if (ask) {
      asks.set(key, known.phase === 'done' ? { ask, phase: 'open' } : { ...known, ask });
    } else if (known.phase === 'done') {
      asks.set(key, known);
    } else {
      asks.set(key, {
        ...known,
        phase: 'done',
        reply: known.reply ?? 'gone',
        mine: known.phase === 'sending'
      });
    }
  }
  for (const ask of [...open.values()].sort((a, b) => compare(a.created, b.created))) {
    const key = keyOf(ask.host, ask.id);
    if (!asks.has(key)) {
      asks.set(key, { ask, phase: 'open' });
    }
  }
  return asks;
}

// --- one event -----------------------------------------------------------------------------------

/** The state after an event.  Unknown types, and events of things that are not known, change nothing. */
export function applyEvent(state: State, event: HostEvent): State {
  const { host, data } = event;
  switch (event.type) {
    case 'session.updated': {
      const session = data as Session;
      const key = keyOf(session.host ?? host, session.id);
      const earlier = state.sessions.get(key);
      const place = earlier?.directory === session.directory ? earlier.place : undefined;
      return { ...state, sessions: withEntry(state.sessions, key, { ...session, place }) };
    }
    case 'session.removed':
      return { ...state, sessions: without(state.sessions, keyOf(host, data.id)) };
    case 'session.status': {
      const key = keyOf(host, data.id);
      const session = state.sessions.get(key);
      const retry: Retry | null = data.retry ?? null;
      if (!session || (session.status === data.status && session.retry?.attempt === retry?.attempt)) {
        return state;
      }
      return {
        ...state,
        sessions: withEntry(state.sessions, key, {
          ...session,
          status: data.status as SessionStatus,
          error: (data.error as string | null | undefined) ?? null,
          retry
        })
      };
    }
    case 'ask.created': {
      const ask = data as Ask;
      const key = keyOf(ask.host ?? host, ask.id);
      const known = state.asks.get(key);
      return {
        ...state,
        asks: withEntry(
          state.asks,
          key,
          known?.phase === 'sending' ? { ...known, ask } : { ask, phase: 'open' }
        )
      };
    }
    case 'ask.resolved': {
      const key = keyOf(host, data.id);
      const outcome = outcomeOf(data.reply);
      if (outcome === 'gone' && state.asks.get(key)?.phase === 'sending') {
        // The answer to this page's own request will tell whose it was.
        return state;
      }
      return closeAsk(state, key, outcome);
    }
    case 'worktree.changed':
      return changeWorktree(state, host, data);
    case 'worktree.removed': {
      const key = keyOf(host, data.repo_root);
      const repository = state.repositories.get(key);
      if (!repository?.worktrees.has(data.path)) {
        return state;
      }
      const worktrees = without(repository.worktrees, data.path);
      return { ...state, repositories: withEntry(state.repositories, key, { ...repository, worktrees }) };
    }
    case 'instance.changed':
      return {
        ...state,
        instances: withEntry(state.instances, keyOf(host, data.repo_root), data as Instance)
      };
    default:
      return state;
  }
}

/** The repository that holds a worktree with exactly this path. */
export function repositoryOf(state: State, host: string, path: string): Repository | undefined {
  for (const repository of state.repositories.values()) {
    if (repository.host === (host || LOCAL) && repository.worktrees.has(path)) {
      return repository;
    }
  }
  return undefined;
}

function changeWorktree(state: State, host: string, data: Worktree & { repo_root?: string }): State {
  const { sessions: _, repo_root: root, ...worktree } = data;
  const repository = root
    ? state.repositories.get(keyOf(host, root))
    : repositoryOf(state, host, worktree.path);
  if (!repository) {
    return state;
  }
  const { path, branch } = worktree;
  const worktrees = withEntry(
    repository.worktrees,
    path,
    withKnownDetails(worktree, repository.worktrees.get(path))
  );
  const branches =
    branch === null || repository.branches.get(path) === branch
      ? repository.branches
      : withEntry(repository.branches, path, branch);
  return {
    ...state,
    repositories: withEntry(state.repositories, repository.key, { ...repository, worktrees, branches })
  };
}

// --- asks ----------------------------------------------------------------------------------------

/** An answer of this page is on its way. */
export function sendingAsk(state: State, key: string, reply: Outcome): State {
  const known = state.asks.get(key);
  if (!known || known.phase !== 'open') {
    return state;
  }
  return { ...state, asks: withEntry(state.asks, key, { ask: known.ask, phase: 'sending', reply }) };
}

/** The answer of this page was not taken: it can be given again. */
export function failedAsk(state: State, key: string, error: { message: string; hint: string | null }): State {
  const known = state.asks.get(key);
  if (!known || known.phase === 'done') {
    return state;
  }
  return { ...state, asks: withEntry(state.asks, key, { ask: known.ask, phase: 'open', error }) };
}

/** The ask is over; it was ours when `reply` is what this page had sent. */
export function closeAsk(state: State, key: string, reply: Outcome, mine?: boolean): State {
  const known = state.asks.get(key);
  if (!known || known.phase === 'done') {
    return state;
  }
  const ours = mine ?? (known.phase === 'sending' && known.reply === reply);
  return { ...state, asks: withEntry(state.asks, key, { ask: known.ask, phase: 'done', reply, mine: ours }) };
}

/** An ask that was over long enough to have been seen. */
export function forgetAsk(state: State, key: string): State {
  return state.asks.get(key)?.phase === 'done' ? { ...state, asks: without(state.asks, key) } : state;
}

function outcomeOf(reply: unknown): Outcome {
  switch (reply) {
    case 'once':
    case 'always':
    case 'reject':
      return reply;
    case null:
    case undefined:
      return 'gone';
    default:
      return 'answered';
  }
}

// --- maps that are never changed in place --------------------------------------------------------

export function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
  return new Map(map).set(key, value);
}

/** The same map where there is no such key. */
export function without<K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
  if (!map.has(key)) {
    return map;
  }
  const copy = new Map(map);
  copy.delete(key);
  return copy;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
