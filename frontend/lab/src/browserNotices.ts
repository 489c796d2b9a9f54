/** Notices that the browser shows when the page is behind others: only for who has asked for them by a click. */

import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ISignal, Signal } from '@lumino/signaling';

import { Notice } from './notices.js';

const SETTING = 'browserNotifications';

/** Impossible: not a page that a browser lets notify anybody. Refused: by the user, in the browser. */
export type BrowserState = 'impossible' | 'refused' | 'off' | 'on';

export class BrowserNotices {
  constructor(private readonly settings: ISettingRegistry.ISettings | null) {
    settings?.changed.connect(() => this.changedSignal.emit());
  }

  get changed(): ISignal<this, void> {
    return this.changedSignal;
  }

  get state(): BrowserState {
    if (this.settings === null || !window.isSecureContext || !('Notification' in window)) {
      return 'impossible';
    }
    if (window.Notification.permission === 'denied') {
      return 'refused';
    }
    const isOn = this.settings.get(SETTING).composite === true;
    return isOn && window.Notification.permission === 'granted' ? 'on' : 'off';
  }

  /** Follow a click: the browser may ask its user. */
  async choose(isOn: boolean): Promise<void> {
    if (isOn && window.Notification.permission !== 'granted') {
      await window.Notification.requestPermission();
    }
    await this.settings?.set(SETTING, isOn && window.Notification.permission === 'granted');
    this.changedSignal.emit();
  }

  /** Show a notice where the page cannot be seen. Several pages of one user show it once. */
  show(notice: Notice): void {
    if (!document.hidden || this.state !== 'on') {
      return;
    }
    const shown = new window.Notification(notice.title, { body: notice.body, tag: `bulletin-${notice.lease}` });
    shown.onclick = () => {
      window.focus();
      shown.close();
    };
  }

  private readonly changedSignal = new Signal<this, void>(this);
}
