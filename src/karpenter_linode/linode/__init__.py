"""The Linode adapter: API client, plan tables, LKE pools, and the CloudProvider built of them.

``tables``, ``plan_filter``, ``capacity`` and ``instance_types`` are pure and load no HTTP library, so that ``plan``
starts fast. Everything that talks to the API goes through ``client``. Nothing here knows the embedded world or the
controllers.
"""
