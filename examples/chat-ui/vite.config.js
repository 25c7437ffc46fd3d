// The page and the service are of one origin for the browser.
export default { server: { proxy: { "/v1": "http://127.0.0.1:7070" } } };
