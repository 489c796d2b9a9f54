/** A graphics card: the GPU pool, wherever it has an icon. */

import { LabIcon } from '@jupyterlab/ui-components';

export const gpuIcon = new LabIcon({
  name: 'bulletin:gpu',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3 jp-icon-selectable" fill="#616161">
    <path d="M3 5h2v1h15a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2H5v3H3zm2 3v7h15V8z"/>
    <path d="M7 18h10v2H7z"/>
    <path d="M9 9a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zm0 1.6a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8zM16 9a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zm0 1.6a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8z"/>
  </g>
</svg>`
});
