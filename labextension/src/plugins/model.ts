/**
 * The model of the page, fed by the server and told which folder the user is in.
 */
import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ServerApi } from '../api';
import { OcmanModel } from '../model';
import { absolutePath, serverRoot } from '../places';
import { Preferences } from '../preferences';
import { IOcmanModel, IPreferences, SETTINGS } from './tokens';

declare const require: (path: string) => { version: string };
const PAGE_VERSION: string = require('../../package.json').version;

export const model: JupyterFrontEndPlugin<OcmanModel> = {
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
    window.addEventListener('focus', () => model.lookAgain());
    document.addEventListener('visibilitychange', () => document.hidden || model.lookAgain());
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
  const root = serverRoot();
  if (root === null) {
    return;
  }
  const go = () => {
    const path = fileBrowser?.model.path ?? '';
    // Other drives' folders are not folders of the server's disk.
    if (!app.serviceManager.contents.driveName(path)) {
      void model.goTo(absolutePath(path, root));
    }
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  fileBrowser?.model.pathChanged.connect(() => {
    clearTimeout(timer);
    timer = setTimeout(go, FOLDER_SETTLES);
  });
  go();
}

export const preferences: JupyterFrontEndPlugin<Preferences> = {
  id: 'ocman-jupyter:preferences',
  description: 'Follows the settings of ocman.',
  autoStart: true,
  provides: IPreferences,
  optional: [ISettingRegistry],
  activate: (_: JupyterFrontEnd, settings: ISettingRegistry | null): Preferences => {
    const preferences = new Preferences();
    void settings?.load(SETTINGS).then(
      found => preferences.follow(found),
      reason => console.error('ocman: the settings could not be read', reason)
    );
    return preferences;
  }
};
