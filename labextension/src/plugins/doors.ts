/**
 * The other ways in: the launcher, the file browser, and the status bar.
 */
import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { CommandIDs, NO_ARGS } from '../command_names';
import { ocmanIcon } from '../icons';
import { OcmanModel } from '../model';
import { StatusItem } from '../status';
import { DOMAIN, IOcmanModel } from './tokens';

export const launcher: JupyterFrontEndPlugin<void> = {
  id: 'ocman-jupyter:launcher',
  description: 'A card of the launcher for a new worktree session.',
  autoStart: true,
  optional: [ILauncher, ITranslator],
  activate: (_: JupyterFrontEnd, launcher: ILauncher | null, translator: ITranslator | null): void => {
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    launcher?.add({
      command: CommandIDs.newWorktreeSession,
      args: { isLauncher: true },
      category: trans.__('Other'),
      rank: 10
    });
  }
};

export const fileBrowser: JupyterFrontEndPlugin<void> = {
  id: 'ocman-jupyter:file-browser',
  description: 'A new worktree session from the menu of a folder.',
  autoStart: true,
  optional: [IFileBrowserFactory, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    factory: IFileBrowserFactory | null,
    translator: ITranslator | null
  ): void => {
    const { commands, serviceManager } = app;
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    /** The folder that is selected, or the one that is shown. */
    const folder = (): string | null => {
      const browser = factory?.tracker.currentWidget;
      if (!browser) {
        return null;
      }
      const [item, ...others] = [...browser.selectedItems()];
      const path = item && !others.length ? (item.type === 'directory' ? item.path : null) : browser.model.path;
      return path === null || serviceManager.contents.driveName(path) ? null : path;
    };
    commands.addCommand(CommandIDs.newWorktreeSessionInFolder, {
      label: trans.__('New Worktree Session Here'),
      caption: trans.__('A branch and a folder of its own, of the repository that this folder is in'),
      icon: ocmanIcon,
      describedBy: { args: NO_ARGS },
      isEnabled: () => folder() !== null,
      execute: () => commands.execute(CommandIDs.newWorktreeSession, { cwd: folder() ?? '' })
    });
  }
};

export const status: JupyterFrontEndPlugin<void> = {
  id: 'ocman-jupyter:status',
  description: 'How many sessions need somebody, and how many are busy, in the status bar.',
  autoStart: true,
  requires: [IOcmanModel],
  optional: [IStatusBar, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: OcmanModel,
    statusBar: IStatusBar | null,
    translator: ITranslator | null
  ): void => {
    if (!statusBar) {
      return;
    }
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const item = new StatusItem(model, trans, () => void app.commands.execute(CommandIDs.showPanel));
    statusBar.registerStatusItem(status.id, {
      item,
      align: 'left',
      rank: 50,
      isActive: () => item.isActive,
      activeStateChanged: item.activeChanged
    });
  }
};
