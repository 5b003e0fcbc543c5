/**
 * The commands of rows and tabs, in their menus and in the palette.
 */
import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Actions } from '../actions';
import { CommandIDs } from '../command_names';
import { addCommands } from '../commands';
import { OcmanModel } from '../model';
import { folderOpener } from '../opening';
import { pointed } from './sessions';
import { DOMAIN, IOcmanModel, IPanel, ITabs, PanelParts, Tabs } from './tokens';

export const rows: JupyterFrontEndPlugin<void> = {
  id: 'ocman-jupyter:rows',
  description: 'What can be done to repositories, worktrees and sessions.',
  autoStart: true,
  requires: [IOcmanModel],
  optional: [IPanel, ITabs, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: OcmanModel,
    panel: PanelParts | null,
    tabs: Tabs | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const { commands, shell, serviceManager } = app;
    const trans = (translator ?? nullTranslator).load(DOMAIN);
    const { terminals } = serviceManager;
    const showPanel = () => panel && shell.activateById(panel.widget.id);
    addCommands({
      commands,
      model,
      trans,
      actions: panel?.actions ?? new Actions(model),
      pointed: () => pointed(panel, tabs),
      showDetails: key => {
        if (panel) {
          panel.view.session = key;
          showPanel();
        }
      },
      closeSession: key => tabs?.close(key),
      showForm: form => {
        if (panel) {
          showPanel();
          panel.view.form = form;
        }
      },
      openTerminal: terminals.isAvailable()
        ? async cwd => {
            const terminal = await terminals.startNew({ cwd });
            await commands.execute('terminal:open', { name: terminal.name });
          }
        : null,
      folderOpener: path => folderOpener(app, path)
    });
    const left: string[] = [
      // They are about a row's menu, what has the focus, or a folder of the file browser.
      CommandIDs.showRowMenu,
      CommandIDs.newHere,
      CommandIDs.allowOnce,
      CommandIDs.allowAlways,
      CommandIDs.rejectAsk,
      CommandIDs.nextMessage,
      CommandIDs.previousMessage,
      CommandIDs.toggleMessage,
      CommandIDs.focusMessages,
      CommandIDs.focusText,
      CommandIDs.sendMessage,
      CommandIDs.nextFile,
      CommandIDs.previousFile,
      CommandIDs.nextChange,
      CommandIDs.previousChange,
      CommandIDs.newWorktreeSessionInFolder
    ];
    for (const command of Object.values(CommandIDs)) {
      if (!left.includes(command)) {
        palette?.addItem({ command, category: trans.__('ocman') });
      }
    }
  }
};
