"""GPU families and the devices that a Linode plan will publish, with the source of every value."""
