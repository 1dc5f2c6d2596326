import { Component, type ReactNode } from "react";
import { ProblemBox } from "../ui/problem-box";

interface State {
  error: Error | null;
}

/** Keeps a fault of one pane from the others. */
export class ErrorBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override render(): ReactNode {
    const error = this.state.error;
    if (!error) return this.props.children;
    const problem = { sentence: error.message, trace: null, status: null };
    return (
      <div className="centre">
        <ProblemBox title="This part of the page failed" problem={problem} retry={() => this.setState({ error: null })} />
      </div>
    );
  }
}
