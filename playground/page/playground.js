'use strict';

(() => {
  const root = document.getElementById('playground');
  if (!window.React || !window.ReactDOM || !window.GraphiQL) {
    document.getElementById('notice').textContent =
      'GraphiQL could not be loaded. Run "make build" to have it built in; without that it needs the internet.';
    return;
  }
  const settings = JSON.parse(document.getElementById('settings').textContent);

  // The dialogs of GraphiQL add a style element, and look for its nonce here.
  window.__webpack_nonce__ = document.currentScript.nonce;

  // What the page remembers is kept apart from other GraphiQLs of this origin, and from other editions of the examples.
  const family = 'tidemark-playground:';
  const prefix = `${family}${settings.edition}:`;
  const keys = (start) => Object.keys(localStorage).filter((key) => key.startsWith(start));
  const storage = {
    getItem: (key) => localStorage.getItem(prefix + key),
    setItem: (key, value) => localStorage.setItem(prefix + key, value),
    removeItem: (key) => localStorage.removeItem(prefix + key),
    clear: () => keys(prefix).forEach((key) => localStorage.removeItem(key)),
    get length() {
      return keys(prefix).length;
    },
  };

  // The first visit begins as if the examples had been typed in before. Headers are never remembered, so that each
  // visit has the token that the page came with.
  if (storage.length === 0) {
    keys(family).forEach((key) => localStorage.removeItem(key));
    const tabs = settings.examples.map(({ name, query, variables = null }, index) => ({
      id: `example-${index}`,
      title: name,
      query,
      variables,
      headers: null,
      operationName: name,
      response: null,
    }));
    storage.setItem('graphiql:tabState', JSON.stringify({ activeTabIndex: 0, tabs }));
    storage.setItem('graphiql:query', tabs[0].query);
    storage.setItem('graphiql:variables', tabs[0].variables ?? '');
  }

  const resolve = (endpoint, protocol = (scheme) => scheme) => {
    const url = new URL(endpoint, location.href);
    url.protocol = protocol(url.protocol);
    return url.href;
  };
  const fetch = GraphiQL.createFetcher({
    url: resolve(settings.endpoint),
    subscriptionUrl:
      settings.subscriptionEndpoint && resolve(settings.subscriptionEndpoint, (scheme) => scheme.replace('http', 'ws')),
    enableIncrementalDelivery: false,
  });
  // GraphiQL asks for the schema before its headers editor is there.
  const fetcher = (params, { headers = JSON.parse(settings.headers), ...options } = {}) =>
    fetch(params, { ...options, headers });

  ReactDOM.createRoot(root).render(
    React.createElement(
      GraphiQL,
      {
        fetcher,
        storage,
        defaultHeaders: settings.headers,
        defaultEditorToolsVisibility: true,
        shouldPersistHeaders: false,
      },
      React.createElement(GraphiQL.Logo, null, React.createElement('span', { id: 'brand' }, 'Tidemark')),
    ),
  );
})();
