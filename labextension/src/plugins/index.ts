/**
 * How ocman joins JupyterLab and Jupyter Notebook.
 *
 * Each plugin does one thing and works without the others where it can: what an application does not have is left out.
 */
import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { diffs, documents } from './diffs';
import { fileBrowser, launcher, status } from './doors';
import { model, preferences } from './model';
import { notifications } from './notifications';
import { panel } from './panel';
import { rows } from './rows';
import { sessions } from './sessions';

export { IOcmanModel } from './tokens';

export const plugins: JupyterFrontEndPlugin<any>[] = [
  model,
  preferences,
  panel,
  sessions,
  diffs,
  documents,
  rows,
  notifications,
  launcher,
  fileBrowser,
  status
];
