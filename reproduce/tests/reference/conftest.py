"""What tests of downloads share."""

from file_server import server as server
