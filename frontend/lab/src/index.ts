/** The GPU pool in JupyterLab and Notebook. Where there is no pool, nothing of it is seen. */

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Clipboard, Dialog, ICommandPalette, Notification, showDialog } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { PathExt } from '@jupyterlab/coreutils';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';

import { BrowserNotices } from './browserNotices.js';
import { CellToggle } from './cellToggle.js';
import { gpuLineHighlight } from './editorHighlight.js';
import { isGpuCell } from './gpuLine.js';
import { gpuIcon } from './icon.js';
import { Notice } from './notices.js';
import { PoolModel } from './poolModel.js';
import { PanelHost, PoolPanel } from './poolPanel.js';
import { StatusItem } from './statusItem.js';

const PLUGIN = '@bulletin/lab:plugin';
const TOGGLE = 'bulletin:toggle-gpu-cell';
const OPEN = 'bulletin:open-panel';

async function loadSettings(registry: ISettingRegistry | null): Promise<ISettingRegistry.ISettings | null> {
  try {
    return registry === null ? null : await registry.load(PLUGIN);
  } catch {
    return null; // it is built without: all has a default
  }
}

function makeHost(app: JupyterFrontEnd): PanelHost {
  return {
    pathOf: kernel => {
      for (const session of app.serviceManager.sessions.running()) {
        if (session.kernel?.id === kernel) {
          return session.path;
        }
      }
      return '';
    },
    openNotebook: path => void app.commands.execute('docmanager:open', { path }),
    copy: text => {
      Clipboard.copyToSystem(text);
      Notification.info(`Copied: ${text}`, { autoClose: 2_000 });
    },
    confirmStop: async sentence => {
      const buttons = [Dialog.cancelButton({ label: 'Keep It Running' }), Dialog.warnButton({ label: 'Stop the Cell' })];
      const answer = await showDialog({ title: 'Stop this cell?', body: sentence, buttons, defaultButton: 0 });
      return answer.button.accept;
    },
    say: text => void Notification.info(text, { autoClose: 5_000 })
  };
}

async function activate(
  app: JupyterFrontEnd,
  tracker: INotebookTracker | null,
  statusBar: IStatusBar | null,
  palette: ICommandPalette | null,
  registry: ISettingRegistry | null
): Promise<void> {
  const { commands, shell } = app;
  const host = makeHost(app);
  const pool = new PoolModel(app.serviceManager.serverSettings, kernel => PathExt.basename(host.pathOf(kernel)));
  const toggle = tracker === null ? null : new CellToggle(tracker);
  commands.addCommand(TOGGLE, {
    label: args => (args['toolbar'] === true ? '' : 'Run the Cell on a GPU (%%gpu)'),
    caption: () => (toggle?.isOn ? 'Runs on a GPU of the pool. Click: run here' : 'Run this cell on a GPU (%%gpu)'),
    icon: gpuIcon,
    isVisible: () => pool.isThere && (toggle?.isPossible ?? false),
    isEnabled: () => pool.isThere && (toggle?.isPossible ?? false),
    isToggleable: true,
    isToggled: () => toggle?.isOn ?? false,
    execute: () => toggle?.press(),
    describedBy: { args: { type: 'object', properties: { toolbar: { type: 'boolean' } } } }
  });

  NotebookActions.executionScheduled.connect((_, { cell }) => {
    if (pool.isThere && cell instanceof CodeCell && isGpuCell(cell.model.sharedModel.getSource())) {
      pool.expectCell();
    }
  });
  toggle?.changed.connect(() => commands.notifyCommandChanged(TOGGLE));

  const settings = await loadSettings(registry);
  const browser = new BrowserNotices(settings);
  const panel = new PoolPanel(pool, host, browser);
  commands.addCommand(OPEN, {
    label: 'Show My Cells on the GPU Pool',
    icon: gpuIcon,
    isVisible: () => pool.isThere,
    isEnabled: () => pool.isThere,
    execute: () => shell.activateById(panel.id),
    describedBy: { args: { type: 'object', properties: {} } }
  });
  for (const command of [TOGGLE, OPEN]) {
    palette?.addItem({ command, category: 'GPU Pool' });
  }
  const item = new StatusItem(pool, () => void commands.execute(OPEN));
  statusBar?.registerStatusItem(`${PLUGIN}:status`, {
    item,
    align: 'right',
    rank: 50,
    isActive: () => pool.view.brief !== '',
    activeStateChanged: pool.changed
  });

  const show = (): void => {
    if (pool.isThere && !panel.isAttached) {
      shell.add(panel, 'right', { rank: 700 });
    } else if (!pool.isThere && panel.isAttached) {
      panel.parent = null;
    }
    commands.notifyCommandChanged(TOGGLE);
    commands.notifyCommandChanged(OPEN);
  };
  pool.changed.connect(show);
  show();
  pool.noticed.connect((_, notice: Notice) => {
    if (settings?.get('notifications').composite === false) {
      return;
    }
    const body = notice.body.charAt(0).toUpperCase() + notice.body.slice(1);
    Notification.emit(`${notice.title}. ${body}`, notice.isWell ? 'info' : 'warning', {
      autoClose: document.hidden ? false : 8_000,
      actions: [{ label: 'My cells', callback: () => void commands.execute(OPEN) }]
    });
    browser.show(notice);
  });
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: 'The GPU pool: what is free, what of yours runs and waits, and the %%gpu button.',
  autoStart: true,
  optional: [INotebookTracker, IStatusBar, ICommandPalette, ISettingRegistry],
  activate
};

const editor: JupyterFrontEndPlugin<void> = {
  id: '@bulletin/lab:editor',
  description: 'Highlights %%gpu lines.',
  autoStart: true,
  requires: [IEditorExtensionRegistry],
  activate: (_, extensions: IEditorExtensionRegistry) => {
    extensions.addExtension({
      name: 'bulletin:gpu-line',
      factory: () => EditorExtensionRegistry.createImmutableExtension(gpuLineHighlight)
    });
  }
};

export default [plugin, editor];
