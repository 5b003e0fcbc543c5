/**
 * Where a session works, as its parts call it.
 */
import { worktreeOf } from '../panel/rows';
import { worktreeTitle } from '../panel/words';
import { KnownSession, State, baseName } from '../state';

/** The name and the folder of a session's worktree, or of what stands for it. */
export function placeOf(state: State, session: KnownSession | null): { name: string; path: string } {
  const worktree = session && worktreeOf(state, session);
  if (worktree) {
    return { name: worktreeTitle(worktree), path: worktree.path };
  }
  return session ? { name: baseName(session.directory), path: session.directory } : { name: '', path: '' };
}
