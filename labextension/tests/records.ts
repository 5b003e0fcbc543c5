/**
 * Records for the tests, as short as a test wants them.
 */
import { Ask, FileDiff, Session, Snapshot, Worktree, WorktreeList } from '../src/records';
import { keyOf } from '../src/state';

export const key = (id: string): string => keyOf('local', id);

export function session(id: string, facts: Partial<Session> = {}): Session {
  return {
    id,
    title: id,
    directory: '/r/w',
    host: 'local',
    repo_root: '/r',
    project: null,
    status: 'idle',
    parent_id: null,
    created: '2026-01-01T00:00:00Z',
    updated: '2026-01-01T00:00:00Z',
    agent: null,
    model: null,
    cost: 0,
    tokens: {},
    pending: [],
    ...facts
  };
}

export function fileDiff(path: string, facts: Partial<FileDiff> = {}): FileDiff {
  return {
    path,
    status: 'modified',
    additions: 1,
    deletions: 1,
    binary: false,
    notebook: false,
    patch: '',
    ...facts
  };
}

export function ask(id: string, facts: Partial<Ask> = {}): Ask {
  return {
    id,
    kind: 'permission',
    session_id: 'a',
    host: 'local',
    title: 'a',
    permission: 'bash',
    patterns: ['ls'],
    questions: [],
    created: '2026-01-01T00:00:00Z',
    ...facts
  };
}

export function worktree(name: string, facts: Partial<Worktree> = {}): Worktree {
  return {
    path: `/r/${name}`,
    name,
    branch: name,
    head: 'c1',
    is_main: false,
    state: 'ok',
    prunable: false,
    detached: false,
    locked: false,
    lock_reason: null,
    made_by_ocman: true,
    base: null,
    changes: null,
    ahead: null,
    behind: null,
    merged: 'unknown',
    operation: null,
    last_activity: null,
    ...facts
  };
}

export function list(worktrees: Worktree[], facts: Partial<WorktreeList> = {}): WorktreeList {
  return { repo_root: '/r', default_base: null, worktrees, sessions_elsewhere: [], ...facts };
}

export function snapshot(facts: Partial<Snapshot>): Snapshot {
  return { instances: [], sessions: [], asks: [], repositories: [], ...facts };
}
