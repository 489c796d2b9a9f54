// What stands instead of a page that cannot be shown: it asks for nothing more until somebody loads it again.
import { Component, type ComponentChildren } from "preact";

/** Shows the page inside, or, from its first fault on, that there is one and what to do. */
export class PageGuard extends Component<{ children: ComponentChildren }, { isFaulty: boolean }> {
  override state = { isFaulty: false };

  override componentDidCatch(error: unknown) {
    console.error(error);
    this.setState({ isFaulty: true });
  }

  override render() {
    if (!this.state.isFaulty) return this.props.children;
    return (
      <p class="problem" role="alert">
        This page cannot show what the pool says. After an upgrade that is so until the service of the pool is started again: tell an admin
        of the hub. <a href={location.href}>Load the page again</a>
      </p>
    );
  }
}
