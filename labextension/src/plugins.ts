/**
 * How ocman joins JupyterLab and Jupyter Notebook: one plugin for the model, one for the side panel.
 */
import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import { Token } from '@lumino/coreutils';
import { ServerApi } from './api';
import { ocmanIcon } from './icons';
import { OcmanModel } from './model';
import { PanelView, SavedView } from './panel/view';
import { OcmanPanel } from './panel/widget';

declare const require: (path: string) => { version: string };
const PAGE_VERSION: string = require('../package.json').version;

/** The model of this page, for other plugins that show sessions. */
export const IOcmanModel = new Token<OcmanModel>(
  'ocman-jupyter:IOcmanModel',
  'Repositories, worktrees and sessions of ocman.'
);

export const CommandIDs = {
  showPanel: 'ocman:show-panel',
  newWorktreeSession: 'ocman:new-worktree-session',
  refresh: 'ocman:refresh'
};

const model: JupyterFrontEndPlugin<OcmanModel> = {
  id: 'ocman-jupyter:model',
  description: 'Keeps the state of all sessions, fed by one WebSocket.',
  autoStart: true,
  provides: IOcmanModel,
  optional: [IDefaultFileBrowser],
  activate: (app: JupyterFrontEnd, fileBrowser: IDefaultFileBrowser | null): OcmanModel => {
    const api = new ServerApi(app.serviceManager.serverSettings);
    const model = new OcmanModel({ api, pageVersion: PAGE_VERSION });
    void app.started.then(() => {
      followFileBrowser(app, model, fileBrowser);
      model.start();
    });
    window.addEventListener('online', () => model.retry());
    document.addEventListener('visibilitychange', () => document.hidden || model.retry());
    return model;
  }
};

/** A step through many folders is one question, in milliseconds. */
const FOLDER_SETTLES = 400;

function followFileBrowser(
  app: JupyterFrontEnd,
  model: OcmanModel,
  fileBrowser: IDefaultFileBrowser | null
): void {
  // `serverRoot` hides the home directory behind "~", which means nothing to the server.
  const root = PageConfig.getOption('ocmanRoot') || PageConfig.getOption('serverRoot');
  if (!root.startsWith('/')) {
    return;
  }
  const go = () => {
    const path = fileBrowser?.model.path ?? '';
    // Other drives' folders are not folders of the server's disk.
    if (!app.serviceManager.contents.driveName(path)) {
      void model.goTo(path ? `${root.replace(/\/+$/, '')}/${path}` : root);
    }
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  fileBrowser?.model.pathChanged.connect(() => {
    clearTimeout(timer);
    timer = setTimeout(go, FOLDER_SETTLES);
  });
  go();
}

const panel: JupyterFrontEndPlugin<void> = {
  id: 'ocman-jupyter:panel',
  description: 'A side panel that lists worktrees and their sessions, live.',
  autoStart: true,
  requires: [IOcmanModel],
  optional: [ILayoutRestorer, ICommandPalette, ISettingRegistry, ITranslator, IStateDB],
  activate: (
    app: JupyterFrontEnd,
    model: OcmanModel,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    settings: ISettingRegistry | null,
    translator: ITranslator | null,
    stateDB: IStateDB | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('ocman_jupyter');
    const view = new PanelView(saved => void stateDB?.save(panel.id, saved as any));
    const widget = new OcmanPanel(model, view, trans);
    void stateDB?.fetch(panel.id).then(saved => saved && view.restore(saved as SavedView));

    let side = '';
    const place = (wanted: string) => {
      if (wanted !== side) {
        side = wanted;
        app.shell.add(widget, side, { rank: 210, type: 'ocman' });
      }
    };
    // At once, so that a restored layout finds it; moved when the settings say so.
    place('left');
    restorer?.add(widget, widget.id);
    void settings?.load(panel.id).then(
      found => {
        const read = () => place(found.get('side').composite === 'right' ? 'right' : 'left');
        found.changed.connect(read);
        read();
      },
      reason => console.error('ocman: the settings could not be read', reason)
    );

    const show = () => app.shell.activateById(widget.id);
    app.commands.addCommand(CommandIDs.showPanel, {
      label: trans.__('Show ocman Panel'),
      caption: trans.__('Worktrees and their sessions'),
      icon: ocmanIcon,
      execute: show
    });
    app.commands.addCommand(CommandIDs.newWorktreeSession, {
      label: trans.__('New Worktree Session'),
      caption: trans.__('A branch and a folder of its own, with an agent in it'),
      icon: ocmanIcon,
      execute: () => {
        show();
        view.form = { repository: null };
      }
    });
    app.commands.addCommand(CommandIDs.refresh, {
      label: trans.__('Refresh Worktrees'),
      caption: trans.__('Read the state of all worktrees again'),
      icon: refreshIcon,
      execute: () => model.refresh()
    });
    for (const command of Object.values(CommandIDs)) {
      palette?.addItem({ command, category: trans.__('ocman') });
    }
  }
};

export const plugins: JupyterFrontEndPlugin<any>[] = [model, panel];
