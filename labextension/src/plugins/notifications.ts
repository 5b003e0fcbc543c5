/**
 * Lab's notifications of sessions that are not looked at.
 */
import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ITranslator, TranslationBundle, nullTranslator } from '@jupyterlab/translation';
import { askText } from '../asks';
import { CommandIDs } from '../command_names';
import { OcmanModel } from '../model';
import { Note, Notifier } from '../notify';
import { worktreeOf } from '../panel/rows';
import { worktreeTitle } from '../panel/words';
import { Preferences } from '../preferences';
import { State, fromKey } from '../state';
import { DOMAIN, IOcmanModel, IPanel, IPreferences, ITabs, PanelParts, Tabs } from './tokens';

/** A finished session is told for so long, in milliseconds; one that needs you until it does not. */
const FINISHED_STAYS = 8_000;

export const notifications: JupyterFrontEndPlugin<void> = {
  id: 'ocman-jupyter:notifications',
  description: 'Tells when a session needs somebody, or has finished, while nobody looks at it.',
  autoStart: true,
  requires: [IOcmanModel, IPreferences],
  optional: [IPanel, ITabs, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: OcmanModel,
    preferences: Preferences,
    panel: PanelParts | null,
    tabs: Tabs | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const notifier = new Notifier({
      model,
      wants: kind => {
        const { notifyNeedsYou, notifyFinished } = preferences.chosen;
        return kind === 'needs_you' ? notifyNeedsYou : notifyFinished;
      },
      sees: (sessionKey, kind) =>
        document.visibilityState === 'visible' &&
        // An ask stands in the panel as well, with all that it needs.
        (!!tabs?.isSeen(sessionKey) || isInCell(sessionKey) || (kind === 'needs_you' && !!panel?.widget.isVisible)),
      show: (note, earlier) => {
        const message = messageOf(note, model.state, trans);
        const options = {
          autoClose: note.kind === 'needs_you' ? (false as const) : FINISHED_STAYS,
          actions: [
            {
              label: trans.__('Open'),
              caption: trans.__('Show the session'),
              displayType: 'accent' as const,
              callback: () =>
                void app.commands.execute(CommandIDs.openSession, { ...fromKey(note.sessionKey) })
            }
          ]
        };
        const type = { needs_you: 'warning', finished: 'success', failed: 'error' } as const;
        if (earlier !== null && Notification.update({ id: earlier, message, ...options })) {
          return earlier;
        }
        return Notification.emit(message, type[note.kind], options);
      },
      dismiss: id => Notification.dismiss(id)
    });
    const look = () => notifier.look();
    document.addEventListener('visibilitychange', look);
    app.shell.currentChanged?.connect(look);
    panel?.view.changed.connect(look);
  }
};

/** Whether a notebook's live panel of the session is in sight. */
function isInCell(sessionKey: string): boolean {
  const name = CSS.escape(fromKey(sessionKey).id);
  return [...document.querySelectorAll(`[class*="ocman-live-"]:has([data-ocman-session="${name}"])`)].some(panel => {
    const { top, bottom, height } = panel.getBoundingClientRect();
    return height > 0 && bottom > 0 && top < window.innerHeight;
  });
}

/** One line; Lab shows it as text. */
function messageOf({ kind, sessionKey, title, asks }: Note, state: State, trans: TranslationBundle): string {
  const session = state.sessions.get(sessionKey);
  const worktree = session && worktreeOf(state, session);
  const name = worktree ? worktreeTitle(worktree) : title;
  const whole = name === title ? short(title) : `${short(name)} / ${short(title)}`;
  switch (kind) {
    case 'finished':
      return trans.__('%1 has finished.', whole);
    case 'failed':
      return trans.__('%1 has failed.', whole);
    default: {
      if (asks.length > 1) {
        return trans.__('%1 needs you: %2 asks wait.', whole, asks.length);
      }
      const { deed, object } = askText(asks[0].ask, trans);
      return trans.__('%1 needs you: %2 %3', whole, deed, short(object, 60));
    }
  }
}

function short(text: string, most = 30): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
