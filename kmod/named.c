// SPDX-License-Identifier: GPL-2.0-only
/*
 * Named wheels: /dev/timewheels/NAME, each a character device whose open files
 * are all one wheel. This file knows what a wheel is, not what is done with one.
 *
 * A named wheel lives as long as its struct device is referred to: by its name
 * until it is destroyed, and by its cdev, which every open file refers to until
 * after its release. The last of these references frees its memory. The module is
 * held by the name, and by each open file.
 *
 * Minors are given out in turn: a node that was renamed or copied leads
 * to no other wheel soon after its own is gone.
 */
#include <linux/capability.h>
#include <linux/cdev.h>
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/stringhash.h>
#include <linux/xarray.h>

#include "named.h"
#include "stats.h"

#define TW_NODES	"timewheels!"
#define TW_MINORS	XA_LIMIT(0, MINORMASK)

/* The first minor. Tests begin near the end, to see them wrap. */
#ifndef TW_FIRST_MINOR
#define TW_FIRST_MINOR	0
#endif

/**
 * struct tw_named_wheel - a wheel with a name
 * @node: its node in tw_named_wheels; tw_named_lock
 * @dev: its device, called by its node; counts the references to all of this
 * @cdev: its character device
 * @wheel: the wheel; constant once it is open to others
 * @path: its node's path below /dev, one copy for devtmpfs to make the node and
 *	one to remove it: each is freed after use. devtmpfs could work the path out
 *	itself, but without memory for that the wheel would have no node, and nobody
 *	would be told
 * @setup: the setup of its creation; constant
 * @uid: its creator; constant
 * @gid: its creator's group; constant
 */
struct tw_named_wheel {
	struct hlist_node	node;
	struct device		dev;
	struct cdev		cdev;
	struct tw_wheel		*wheel;
	char			*path[2];
	struct timewheel_setup	setup;
	kuid_t			uid;
	kgid_t			gid;
};

/*
 * The lock guards the names. It is held while a wheel gets or loses its name, and not while a
 * wheel is set up. Opening does not take it.
 */
static DEFINE_MUTEX(tw_named_lock);
static DEFINE_HASHTABLE(tw_named_wheels, 10);	/* by name */
static DEFINE_XARRAY_ALLOC(tw_minors);		/* minors that are in use */
static u32 tw_minor_next = TW_FIRST_MINOR;
static const struct file_operations *tw_named_fops __ro_after_init;
static dev_t tw_named_first __ro_after_init;

static struct class tw_class = {
	.name	= "timewheel",
};

static struct tw_named_wheel *tw_named_from(const struct device *dev)
{
	return container_of(dev, struct tw_named_wheel, dev);
}

/*
 * Tells devtmpfs the node's path, owner and mode. udev knows the device by its name,
 * in which "!" stands for "/": so no NAME that a user chooses matches udev's rules
 * for other devices.
 */
static char *tw_named_devnode(TW_DEVNODE_CONST struct device *dev,
			      umode_t *mode, kuid_t *uid, kgid_t *gid)
{
	struct tw_named_wheel *named = tw_named_from(dev);

	/* The caller that removes the node asks only for the path. */
	if (uid)
		*uid = named->uid;
	if (gid)
		*gid = named->gid;
	/* udev would let the group of a node open it if there were no mode. */
	if (mode)
		*mode = 0600;

	return xchg(&named->path[!mode], NULL);
}

/* Frees a named wheel that nothing refers to any more. May sleep. */
static void tw_named_release(struct device *dev)
{
	struct tw_named_wheel *named = tw_named_from(dev);

	if (named->wheel) {
		tw_stats_remove(named->wheel);
		tw_wheel_free(named->wheel);
	}
	kfree(named->path[0]);
	kfree(named->path[1]);
	kfree(named);
}

static const struct device_type tw_named_type = {
	.name		= "timewheel",
	.devnode	= tw_named_devnode,
	.release	= tw_named_release,
};

static u32 tw_name_hash(const char *name)
{
	return full_name_hash(NULL, name, strlen(name));
}

static struct tw_named_wheel *tw_named_find(const char *name)
{
	struct tw_named_wheel *named;

	lockdep_assert_held(&tw_named_lock);
	hash_for_each_possible(tw_named_wheels, named, node, tw_name_hash(name))
		if (!strcmp(named->wheel->name, name))
			return named;

	return NULL;
}

/* Makes a wheel that nobody knows yet. The caller lets it go with put_device(). */
static struct tw_named_wheel *tw_named_new(const struct timewheel_setup *setup)
{
	struct tw_named_wheel *named = kzalloc(sizeof(*named), TW_GFP);

	if (!named)
		return NULL;
	device_initialize(&named->dev);
	named->dev.class = &tw_class;
	named->dev.type = &tw_named_type;
	named->setup = *setup;
	named->uid = current_euid();
	named->gid = current_egid();

	return named;
}

static int tw_named_setup(struct tw_named_wheel *named, const char *name)
{
	int err = dev_set_name(&named->dev, TW_NODES "%s", name);
	unsigned int i;

	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(named->path); i++) {
		named->path[i] = kasprintf(TW_GFP, "timewheels/%s", name);
		if (!named->path[i])
			return -ENOMEM;
	}
	named->wheel = tw_wheel_new();
	if (!named->wheel)
		return -ENOMEM;
	named->wheel->name = dev_name(&named->dev) + strlen(TW_NODES);

	return tw_stats_setup(named->wheel, &named->setup);
}

/* Gives a wheel a number and makes its node, so that others can open it. */
static int tw_named_publish(struct tw_named_wheel *named)
{
	u32 minor;
	int err = xa_alloc_cyclic(&tw_minors, &minor, named, TW_MINORS,
				  &tw_minor_next, GFP_KERNEL);

	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	named->dev.devt = MKDEV(MAJOR(tw_named_first), minor);
	device_set_pm_not_required(&named->dev);
	cdev_init(&named->cdev, tw_named_fops);
	named->cdev.owner = THIS_MODULE;
	err = cdev_device_add(&named->cdev, &named->dev);
	if (err) {
		xa_erase(&tw_minors, minor);
		return err;
	}
	/* The name holds the module, as each open file does. */
	__module_get(THIS_MODULE);
	hash_add(tw_named_wheels, &named->node,
		 tw_name_hash(named->wheel->name));

	return 0;
}

/* Makes a wheel that is set up and that nobody knows yet, or returns an error. */
static struct tw_named_wheel *tw_named_make(const char *name,
					    const struct timewheel_setup *setup)
{
	struct tw_named_wheel *named = tw_named_new(setup);
	int err;

	if (!named)
		return ERR_PTR(-ENOMEM);
	err = tw_named_setup(named, name);
	if (!err)
		return named;
	put_device(&named->dev);

	return ERR_PTR(err);
}

static bool tw_setup_same(const struct timewheel_setup *a,
			  const struct timewheel_setup *b)
{
	const size_t size = offsetof(struct timewheel_setup, size) +
			    sizeof(a->size);

	/* Compares all but the size: there are no holes, and reserved fields are 0. */
	return !memcmp((void *)a + size, (void *)b + size, sizeof(*a) - size);
}

/* Returns what CREATE says of a name that exists, -ENOENT if it does not. */
static int tw_named_meet(const char *name, const struct timewheel_setup *setup,
			 bool exclusive)
{
	const struct tw_named_wheel *named = tw_named_find(name);

	lockdep_assert_held(&tw_named_lock);
	if (!named)
		return -ENOENT;

	return !exclusive && tw_setup_same(&named->setup, setup) ?
	       TIMEWHEEL_RES_EXISTED : -EEXIST;
}

/*
 * Enters a wheel that was made, unless another caller was faster. Returns why no wheel could
 * be made, if none was.
 */
static int tw_named_enter(struct tw_named_wheel *named, const char *name,
			  const struct timewheel_setup *setup, bool exclusive)
{
	int ret = tw_named_meet(name, setup, exclusive);

	lockdep_assert_held(&tw_named_lock);
	if (ret != -ENOENT)
		return ret;

	return IS_ERR(named) ? PTR_ERR(named) : tw_named_publish(named);
}

/*
 * Makes a named wheel, or finds that it is there. @name and @setup have been checked.
 * @exclusive: only a new one will do. May sleep.
 *
 * Returns 0; TIMEWHEEL_RES_EXISTED; -EINTR when the caller is killed; -EEXIST; -EINVAL;
 * -ENOMEM; -ENOSPC; -EDQUOT; -ERANGE.
 */
int tw_named_create(const char *name, const struct timewheel_setup *setup,
		    bool exclusive)
{
	struct tw_named_wheel *named;
	int ret;

	if (mutex_lock_killable(&tw_named_lock))
		return -EINTR;
	ret = tw_named_meet(name, setup, exclusive);
	mutex_unlock(&tw_named_lock);
	if (ret != -ENOENT)
		return ret;

	/* Memory comes before the lock: a cgroup at its limit may take long to find it. */
	named = tw_named_make(name, setup);
	mutex_lock(&tw_named_lock);
	ret = tw_named_enter(named, name, setup, exclusive);
	mutex_unlock(&tw_named_lock);
	if (ret && !IS_ERR(named))
		put_device(&named->dev);

	return ret;
}

static bool tw_named_may_destroy(const struct tw_named_wheel *named)
{
	return uid_eq(named->uid, current_euid()) || capable(CAP_SYS_ADMIN);
}

/* Ends a named wheel. May sleep. Returns 0; -EINTR if the caller is killed; -ENOENT; -EPERM. */
int tw_named_destroy(const char *name)
{
	struct tw_named_wheel *named;
	int err = 0;

	if (mutex_lock_killable(&tw_named_lock))
		return -EINTR;
	named = tw_named_find(name);
	if (!named) {
		err = -ENOENT;
	} else if (!tw_named_may_destroy(named)) {
		err = -EPERM;
	} else {
		hash_del(&named->node);
		xa_erase(&tw_minors, MINOR(named->dev.devt));
		cdev_device_del(&named->cdev, &named->dev);
		tw_wheel_end(named->wheel);
	}
	mutex_unlock(&tw_named_lock);

	if (err)
		return err;
	/* Millions of tokens may end with the wheel, and other callers need not wait for them. */
	put_device(&named->dev);
	/* The caller's file holds the module for the rest of this call. */
	module_put(THIS_MODULE);

	return 0;
}

/* Returns the wheel of a node that is being opened. */
struct tw_wheel *tw_named_of(const struct inode *inode)
{
	return container_of(inode->i_cdev, struct tw_named_wheel, cdev)->wheel;
}

/* Called before the first named wheel. @fops: the operations on files of named wheels. */
int __init tw_named_init(const struct file_operations *fops)
{
	int err = alloc_chrdev_region(&tw_named_first, 0, MINORMASK + 1,
				      "timewheels");

	if (err)
		return err;
	tw_named_fops = fops;
	err = class_register(&tw_class);
	if (err)
		unregister_chrdev_region(tw_named_first, MINORMASK + 1);

	return err;
}

/* Called after the last named wheel. */
void tw_named_exit(void)
{
	class_unregister(&tw_class);
	unregister_chrdev_region(tw_named_first, MINORMASK + 1);
	xa_destroy(&tw_minors);
}
