/**
 * What a command is about: a row of the panel or the session of a tab, looked up in what the page knows.  Pure.
 */
import { OcmanModel } from './model';
import { LOCAL, Worktree } from './records';
import { Row, worktreeOf } from './panel/rows';
import { KnownSession, Repository, State, baseName, keyOf, repositoryOf } from './state';

export type Subject =
  | { readonly kind: 'repository'; readonly host: string; readonly root: string }
  | { readonly kind: 'worktree'; readonly host: string; readonly path: string }
  | { readonly kind: 'session'; readonly host: string; readonly id: string };

/** Everything that a command can do something to, as far as it is known. */
export interface Found {
  readonly host: string;
  readonly repository: Repository | undefined;
  readonly worktree: Worktree | undefined;
  readonly session: KnownSession | undefined;
  /** The folder that it stands for. */
  readonly path: string;
}

/** What a row stands for; `null` for one that is nothing by itself. */
export function subjectOf(row: Row): Subject | null {
  switch (row.kind) {
    case 'repository':
      return { kind: 'repository', host: row.repository.host, root: row.repository.root };
    case 'worktree':
      return { kind: 'worktree', host: row.repository.host, path: row.worktree.path };
    case 'session':
      return { kind: 'session', host: row.session.host || LOCAL, id: row.session.id };
    default:
      return null;
  }
}

/** The subject with what surrounds it; `null` when it is not there any more. */
export function find(state: State, subject: Subject | null): Found | null {
  switch (subject?.kind) {
    case 'repository': {
      const repository = state.repositories.get(keyOf(subject.host, subject.root));
      return repository
        ? { host: subject.host, repository, worktree: undefined, session: undefined, path: repository.root }
        : null;
    }
    case 'worktree': {
      const repository = repositoryOf(state, subject.host, subject.path);
      const worktree = repository?.worktrees.get(subject.path);
      return worktree
        ? { host: subject.host, repository, worktree, session: undefined, path: worktree.path }
        : null;
    }
    case 'session': {
      const session = state.sessions.get(keyOf(subject.host, subject.id));
      if (!session) {
        return null;
      }
      const worktree = worktreeOf(state, session);
      const repository = worktree
        ? repositoryOf(state, subject.host, worktree.path)
        : session.repo_root
          ? state.repositories.get(keyOf(subject.host, session.repo_root))
          : undefined;
      return { host: subject.host, repository, worktree, session, path: worktree?.path ?? session.directory };
    }
    default:
      return null;
  }
}

/** The folder of a session that is gone, with what a worktree needs that takes its place. */
export interface LostWorktree {
  readonly path: string;
  readonly branch: string;
  /** Of the session. */
  readonly title: string;
}

/** What a session has lost, when its folder is gone. */
export function lostWorktree({ repository, session }: Found): LostWorktree | undefined {
  if (session?.status !== 'directory_missing') {
    return undefined;
  }
  const path = session.directory;
  // A folder is named after its branch: that is all that is left when nobody here saw the worktree.
  return { path, branch: repository?.branches.get(path) ?? baseName(path), title: session.title };
}

/** The key of the row that a subject has in the tree: errors of what was done to it stand there. */
export function rowKey(subject: Subject): string {
  switch (subject.kind) {
    case 'repository':
      return keyOf(subject.host, subject.root);
    case 'worktree':
      return `worktree\n${keyOf(subject.host, subject.path)}`;
    case 'session':
      return `session\n${keyOf(subject.host, subject.id)}`;
  }
}

/** The repository that new work goes to when nothing else was chosen. */
export function currentRepository(model: OcmanModel): Repository | undefined {
  const { repositories } = model.state;
  const here = model.place?.repository;
  return (
    (here && repositories.get(here)) || (repositories.size === 1 ? [...repositories.values()][0] : undefined)
  );
}
