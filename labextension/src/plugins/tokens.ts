/**
 * What the plugins of ocman give each other, and other extensions.
 */
import { Token } from '@lumino/coreutils';
import { Actions } from '../actions';
import { OcmanModel } from '../model';
import { OcmanPanel } from '../panel/widget';
import { PanelView } from '../panel/view';
import { Preferences } from '../preferences';
import { Subject } from '../subject';

/** The model of this page, for other plugins that show sessions. */
export const IOcmanModel = new Token<OcmanModel>(
  'ocman-jupyter:IOcmanModel',
  'Repositories, worktrees and sessions of ocman.'
);

export const IPreferences = new Token<Preferences>('ocman-jupyter:IPreferences', 'The settings of ocman.');

export interface PanelParts {
  readonly widget: OcmanPanel;
  readonly view: PanelView;
  readonly actions: Actions;
}

export const IPanel = new Token<PanelParts>('ocman-jupyter:IPanel', 'The side panel of ocman.');

/** The tabs of sessions and diffs. */
export interface Tabs {
  /** What the tab in front shows; `null` when it is not one of ocman's. */
  readonly current: Subject | null;
  /** Whether a human can see the session now. */
  isSeen(sessionKey: string): boolean;
  /** Close the tab of a session, if there is one. */
  close(sessionKey: string): void;
}

export const ITabs = new Token<Tabs>('ocman-jupyter:ITabs', 'The tabs of sessions and diffs of ocman.');

/** The domain of ocman's texts. */
export const DOMAIN = 'ocman_jupyter';

/** The plugin whose schema holds all settings. */
export const SETTINGS = 'ocman-jupyter:panel';
