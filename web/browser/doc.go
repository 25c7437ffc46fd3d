// Package browser tests the viewer in a real browser. Each test has a server of its own, and a tab that it leaves empty
// for another test; all tabs are of one Chromium. A test fails if the page logs an error, throws, violates its policy,
// or asks another origin for anything, unless the test itself checks that.
//
// The browser is `chromium` in PATH, or what CHROMIUM names. Without one the tests are skipped, or fail if
// REQUIRE_CHROMIUM=1. The package is a module of its own, so that the library does not see what drives the browser.
package browser
