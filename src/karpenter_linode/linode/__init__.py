"""Adapter: Linode API client, plan and price tables, LKE pools, the CloudProvider."""
