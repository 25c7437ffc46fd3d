// Package s3test starts or connects to a real S3 server for tests, by one of several lanes:
//
//	process    a server of our own, as a process on 127.0.0.1
//	endpoint   the store that S3_TEST_ENDPOINT names, in place of it
//	tls        the same after a front with HTTPS, over which the SDK signs differently
//	container  our own server in an otherwise empty container, if there is Docker
//
// Each runs a test on all available lanes; For returns the one on which the other tests run, process or endpoint. The
// environment chooses:
//
//	S3_TEST_LANE       runs everything on this lane, and on no other
//	S3_TEST_ENDPOINT   URL of another store; S3_TEST_BUCKET names a bucket of it that exists. Region and
//	                   credentials are those of the SDK's default chain, S3_TEST_PATH_STYLE=true if the
//	                   bucket has to be in the path. Each test works below a prefix of its own and removes
//	                   its objects.
//	S3TEST_BIN         a built integration/s3server, static, since it is copied into the image too
//	S3TEST_COPPICE     a built coppice for the scripts; without it the test binary is the command
//	REQUIRE_DOCKER=1   makes missing Docker a failure; else the container lane is skipped
//
// Without S3TEST_BIN the server is built from integration/s3server and kept in the user's cache folder under the hash
// of its sources.
package s3test
