"""Templates and deployments."""

from gateway.openapi.schemas import ANY, FLAG, MOMENT, TEXT, WHOLE, array, choice, maybe, record

TEMPLATE = record(
    "Template",
    {
        **dict.fromkeys(("id", "name", "project_id", "project_slug", "latest_version"), TEXT),
        "template_deployment_slug": TEXT,
        "description": maybe(TEXT),
        "updated_at": MOMENT,
    },
)
CHANGED = record("TemplateChanged", {"success": FLAG, "message": ANY}, optional=("message",))
MADE = record("AgentsOfTemplateMade", {"agent_ids": array(TEXT), "deployment_id": TEXT, "group_id": maybe(TEXT)})
DEPLOYMENT = record(
    "Deployment",
    {
        "entities": array(
            record(
                "DeploymentEntity",
                {
                    "id": TEXT,
                    "type": choice("block", "agent", "group"),
                    **dict.fromkeys(("name", "description", "entity_id", "project_id"), maybe(TEXT)),
                },
            )
        ),
        "total_count": WHOLE,
        "deployment_id": TEXT,
        "message": TEXT,
    },
)
DELETED = record(
    "DeploymentDeleted",
    {**dict.fromkeys(("deleted_blocks", "deleted_agents", "deleted_groups"), array(TEXT)), "message": TEXT},
)
