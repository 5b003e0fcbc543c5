/**
 * The side panel, and the commands that show it.
 */
import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import { Actions } from '../actions';
import { CommandIDs, NO_ARGS } from '../command_names';
import { ocmanIcon } from '../icons';
import { OcmanModel } from '../model';
import { openMenu } from '../panel/panel';
import { PanelView, SavedView } from '../panel/view';
import { OcmanPanel } from '../panel/widget';
import { absolutePath, serverRoot } from '../places';
import { Preferences } from '../preferences';
import { fromKey } from '../state';
import { keyIsHeld } from './held';
import { DOMAIN, IOcmanModel, IPanel, IPreferences, PanelParts } from './tokens';

export const panel: JupyterFrontEndPlugin<PanelParts> = {
  id: 'ocman-jupyter:panel',
  description: 'A side panel that lists worktrees and their sessions, live.',
  autoStart: true,
  provides: IPanel,
  requires: [IOcmanModel, IPreferences],
  optional: [ILayoutRestorer, ITranslator, IStateDB],
  activate: (
    app: JupyterFrontEnd,
    model: OcmanModel,
    preferences: Preferences,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
    stateDB: IStateDB | null
  ): PanelParts => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const view = new PanelView(saved => void stateDB?.save(panel.id, saved as any));
    void stateDB?.fetch(panel.id).then(saved => saved && view.restore(saved as SavedView));
    const actions = new Actions(model);
    const onOpen = (key: string) => {
      // Without the plugin of the tabs the panel tells itself what it knows.
      if (commands.hasCommand(CommandIDs.openSession)) {
        void commands.execute(CommandIDs.openSession, { ...fromKey(key) });
      } else {
        view.session = key;
      }
    };
    const widget = new OcmanPanel({ model, view, actions, preferences, trans, onOpen });

    let side = '';
    const place = (wanted: string) => {
      if (wanted !== side) {
        side = wanted;
        shell.add(widget, side, { rank: 210, type: 'ocman' });
      }
    };
    // At once, so that a restored layout finds it; moved when the settings say so.
    place('left');
    restorer?.add(widget, widget.id);
    preferences.changed.connect(() => place(preferences.chosen.side));
    place(preferences.chosen.side);

    // The focus comes back from a menu to its row, and the row is the menu's until its command has run.
    app.contextMenu.menu.aboutToClose.connect(() => {
      const target = view.menuTarget;
      if (target) {
        widget.focusTree();
        setTimeout(() => {
          // Another menu may be open by now.
          if (view.menuTarget === target) {
            view.menuTarget = null;
          }
        });
      }
    });

    const show = () => shell.activateById(widget.id);
    commands.addCommand(CommandIDs.showPanel, {
      label: trans.__('Show ocman Panel'),
      caption: trans.__('Worktrees and their sessions'),
      icon: ocmanIcon,
      describedBy: { args: NO_ARGS },
      execute: show
    });
    commands.addCommand(CommandIDs.newWorktreeSession, {
      label: args => (args.isLauncher ? trans.__('Worktree Session') : trans.__('New Worktree Session…')),
      caption: trans.__('A branch and a folder of its own, with an agent in it'),
      icon: ocmanIcon,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            cwd: { type: 'string', description: "A folder of the repository, as Jupyter's contents name it." },
            isLauncher: { type: 'boolean', description: 'Whether it is shown as a card of the launcher.' }
          }
        }
      },
      execute: args => {
        show();
        const root = serverRoot();
        // The launcher's folder is the file browser's, which the model follows anyway.
        const isPlace = !args.isLauncher && typeof args.cwd === 'string' && root !== null;
        view.form = isPlace
          ? { repository: null, directory: absolutePath(args.cwd as string, root) }
          : { repository: null };
      }
    });
    commands.addCommand(CommandIDs.refresh, {
      label: trans.__('Refresh Worktrees'),
      caption: trans.__('Read the state of all worktrees again'),
      icon: refreshIcon,
      describedBy: { args: NO_ARGS },
      execute: () => model.refresh()
    });
    commands.addCommand(CommandIDs.showRowMenu, {
      label: trans.__('Show the Menu of the Row'),
      caption: trans.__('What can be done with the project, worktree or session'),
      describedBy: { args: NO_ARGS },
      isEnabled: () => focusedRow(widget) !== null,
      execute: () => {
        const row = focusedRow(widget);
        if (row) {
          openMenu(row);
        }
      }
    });
    for (const [id, reply, label] of [
      [CommandIDs.allowOnce, 'once', trans.__('Allow Once')],
      [CommandIDs.allowAlways, 'always', trans.__('Allow Always')],
      [CommandIDs.rejectAsk, 'reject', trans.__('Reject')]
    ] as const) {
      // In a tab one ask is shown, and its keys work from everywhere in it.
      const button = () =>
        document.activeElement
          ?.closest('.ocman-Ask, .ocman-Session')
          ?.querySelector<HTMLElement>(`[data-reply="${reply}"]:not([aria-disabled="true"])`) ?? null;
      commands.addCommand(id, {
        label,
        caption: trans.__('Answer the ask that has the keyboard, or that of the tab'),
        describedBy: { args: NO_ARGS },
        isEnabled: () => button() !== null,
        // The button knows whether the ask has stood long enough.
        execute: () => keyIsHeld() || button()?.click()
      });
    }
    return { widget, view, actions };
  }
};

function focusedRow(widget: OcmanPanel): HTMLElement | null {
  const row = document.activeElement?.closest<HTMLElement>('.ocman-Row') ?? null;
  return row && widget.node.contains(row) ? row : null;
}
