/**
 * The icons of ocman, coloured by the theme.
 */
import { LabIcon } from '@jupyterlab/ui-components';

/** Two ideas that leave one trunk. */
export const ocmanIcon = new LabIcon({
  name: 'ocman:icon',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
  <g fill="none" stroke-width="2">
    <path class="jp-icon3" stroke="#616161" d="M6 8v8M8.5 18.5h4c2 0 2.5-1 2.5-1M6 12c0-3 2-4 5-4h4"/>
  </g>
  <g class="jp-icon3" fill="#616161">
    <circle cx="6" cy="5.5" r="3"/><circle cx="6" cy="18.5" r="3"/><circle cx="17.5" cy="8" r="3"/><circle cx="17.5" cy="16.5" r="3"/>
  </g></svg>`
});

export const branchIcon = new LabIcon({
  name: 'ocman:branch',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="14">
  <g fill="none" stroke-width="1.3">
    <circle class="jp-icon3" stroke="#616161" cx="4.5" cy="3.5" r="1.7"/>
    <circle class="jp-icon3" stroke="#616161" cx="4.5" cy="12.5" r="1.7"/>
    <circle class="jp-icon3" stroke="#616161" cx="11.5" cy="5" r="1.7"/>
    <path class="jp-icon3" stroke="#616161" d="M4.5 5.2v5.6M11.5 6.7c0 2.6-7 1.6-7 4.1"/>
  </g></svg>`
});
