/** The pool in the status bar: what is free and what I run or wait for, in a few words; a click opens the panel. */

import { GroupItem, TextItem } from '@jupyterlab/statusbar';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { gpuIcon } from './icon.js';
import { PoolModel } from './poolModel.js';
import { statusText } from './view.js';

export class StatusItem extends ReactWidget {
  constructor(
    private readonly pool: PoolModel,
    private readonly open: () => void
  ) {
    super();
    this.addClass('jp-mod-highlighted');
    this.addClass('bulletin-StatusItem');
    pool.changed.connect(this.update, this);
  }

  protected render(): JSX.Element | null {
    const view = this.pool.view;
    const text = statusText(view);
    if (text === '') {
      return null;
    }
    const said = [view.summary, view.project].filter(word => word !== '').join('\n');
    return (
      <GroupItem
        spacing={4}
        title={`${said}\nClick for your cells.`}
        onClick={this.open}
        onKeyDown={(event: React.KeyboardEvent) => {
          if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault();
            this.open();
          }
        }}
        role="button"
        tabIndex={0}
        aria-label={`GPU pool: ${text}. Open your cells.`}
      >
        <gpuIcon.react stylesheet="statusBar" />
        <TextItem source={text} />
      </GroupItem>
    );
  }
}
