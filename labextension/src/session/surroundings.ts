/**
 * What every line of a conversation needs to know of where it stands.
 */
import { TranslationBundle } from '@jupyterlab/translation';
import { Painter } from './painter';

export interface Surroundings {
  readonly trans: TranslationBundle;
  readonly painter: Painter;
  readonly host: string;
  /** Of the session: paths are read relative to it. */
  readonly directory: string;
  /** Whether turns say what they cost. */
  readonly showCost: boolean;
  /** Open a file, by its absolute path; lines count from one. */
  readonly onFile: (path: string, line?: number) => void;
  /** Open the diff of the session's worktree. */
  readonly onDiff: () => void;
  /** Open the session with this key. */
  readonly onSession: (key: string) => void;
  /** Send the last prompt again; `null` when nothing can be sent. */
  readonly onResend: (() => void) | null;
}
