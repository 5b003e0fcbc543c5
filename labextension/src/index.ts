/**
 * What JupyterLab loads.
 */
export { plugins as default } from './plugins';
export { IOcmanModel } from './plugins';
export type { OcmanModel } from './model';
