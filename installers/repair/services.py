"""Refused and failed connections: a server that tests need beside them, or the network."""

from __future__ import annotations

import re

from installers.repair.kinds import Kind

_PORTS = {
    "6379": "redis",
    "5432": "postgresql",
    "3306": "mysql",
    "1433": "mssql",
    "27017": "mongodb",
    "5672": "rabbitmq",
    "9092": "kafka",
    "9200": "elasticsearch",
    "11211": "memcached",
    "2181": "zookeeper",
    "2379": "etcd",
    "8500": "consul",
    "9042": "cassandra",
    "8086": "influxdb",
    "4566": "localstack",
    "1883": "mqtt",
    "4222": "nats",
    "389": "ldap",
    "8529": "arangodb",
    "7687": "neo4j",
}
"""The port that a server listens on unless it is told otherwise."""

_NAMED = (
    (r"redis\.exceptions\.ConnectionError|Error (?:111|-\d) connecting to \S*:6379", "redis"),
    (r"psycopg2?\.OperationalError|asyncpg\.\S*Cannot|could not connect to server: .*\n.*PostgreSQL", "postgresql"),
    (
        r"(?:pymysql\.err|MySQLdb|mysql\.connector)[\w.]*: ?\(?(?:2002|2003)|Can't connect to (?:local )?MySQL",
        "mysql",
    ),
    (r"ServerSelectionTimeoutError|pymongo\.errors\.(?:AutoReconnect|ConnectionFailure)", "mongodb"),
    (r"(?:pika|amqp|kombu|aio_pika|aiormq)\.exceptions\.\w*Connection\w*|AMQPConnectionError", "rabbitmq"),
    (r"NoBrokersAvailable|KafkaConnectionError", "kafka"),
    (r"elasticsearch\.exceptions\.ConnectionError|elastic_transport\.ConnectionError", "elasticsearch"),
    (
        r"docker\.errors\.DockerException|Cannot connect to the Docker daemon|Error while fetching server API version",
        "docker",
    ),
    (r"cassandra\.cluster\.NoHostAvailable", "cassandra"),
    (r"neo4j\.exceptions\.ServiceUnavailable", "neo4j"),
    (r"pymemcache\.exceptions|MemcacheServerError", "memcached"),
    (r"NoServersError: nats", "nats"),
)
_SERVICES = tuple((re.compile(regex), name) for regex, name in _NAMED)
_REFUSED = re.compile(r"(?:ConnectionRefusedError|Connection refused|Connect call failed|Errno 111)[^\n]{0,200}")
_LOCAL_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|::1|0\.0\.0\.0)['\"\])]*[:, ]+(?:port[= ]*)?(\d{2,5})\b")
_NETWORK = re.compile(
    r"gaierror|Name or service not known|Temporary failure in name resolution|Network is unreachable"
    r"|nodename nor servname|NameResolutionError|Max retries exceeded with url"
    r"|Cannot connect to host (?!localhost|127\.)"
    r"|URLError: <urlopen error|No address associated with hostname|ConnectTimeout|ServerNotFoundError"
    r"|LocalEntryNotFoundError|We couldn't connect to 'https?:"
)


def connections(text: str) -> list[tuple[Kind, str]]:
    """Return the servers that a text says are missing, and whether it asked the network."""
    found = [(Kind.NEEDS_SERVICE, name) for regex, name in _SERVICES if regex.search(text)]
    if _REFUSED.search(text):
        ports = [_PORTS[port] for port in _LOCAL_PORT.findall(text) if port in _PORTS]
        found += [(Kind.NEEDS_SERVICE, name) for name in ports]
    if not found and _NETWORK.search(text):
        return [(Kind.NEEDS_NETWORK, "")]
    return list(dict.fromkeys(found))
