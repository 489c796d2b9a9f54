"""All endpoints of the REST API, of the table of each subject."""

from bulletin_spawner.service.allowance_endpoints import ALLOWANCE_ENDPOINTS
from bulletin_spawner.service.announcement_endpoints import ANNOUNCEMENT_ENDPOINTS
from bulletin_spawner.service.api_endpoints import ENDPOINTS
from bulletin_spawner.service.node_endpoints import NODE_ENDPOINTS
from bulletin_spawner.service.quota_endpoints import QUOTA_ENDPOINTS
from bulletin_spawner.service.usage_endpoints import USAGE_ENDPOINTS

ALL_ENDPOINTS = (
    *ENDPOINTS,
    *QUOTA_ENDPOINTS,
    *ALLOWANCE_ENDPOINTS,
    *NODE_ENDPOINTS,
    *ANNOUNCEMENT_ENDPOINTS,
    *USAGE_ENDPOINTS,
)
